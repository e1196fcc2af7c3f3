"""Names of principals from certificates, by their subjects and `ssl.principal.mapping.rules`.

Source: javax.security.auth.x500.X500Principal.getName,
org.apache.kafka.common.security.ssl.SslPrincipalMapper (KIP-371).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from kraftlake.runtime.extras import require

_NAMES: Final = {
    "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O",
    "2.5.4.11": "OU", "0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}  # fmt: skip
"""The attributes that have a name in RFC 2253."""
_ESCAPED: Final = re.compile(r"""[,=+<>#;"\\]|^ +| +$""")
_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


@attrs.frozen(kw_only=True)
class _Rule:
    """A pattern for a whole name, with its replacement in Java's form and the case of the result (L, U or empty)."""

    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        made = self.pattern.sub(self._replaced, name)
        return {"L": made.lower, "U": made.upper}.get(self.case, lambda: made)()

    def _replaced(self, match: re.Match[str]) -> str:
        def part(found: re.Match[str]) -> str:
            if found[2] is None:
                return found[1]
            number = found[2]
            while int(number) > self.pattern.groups and len(number) > 1:
                number = number[:-1]  # $12 is group 1 and the digit 2 if there are fewer groups than 12
            if int(number) > self.pattern.groups:
                return found[0]  # no group: literally
            return (match[int(number)] or "") + found[2][len(number) :]

        return _REFERENCE.sub(part, self.replacement)


@attrs.frozen(kw_only=True)
class PrincipalMapper:
    """Rules in order, the first one that matches counts; None stands for DEFAULT, which takes the whole name."""

    rules: tuple[_Rule | None, ...]

    @classmethod
    def of(cls, text: str) -> PrincipalMapper:
        """Parse rules. Raises ValueError; the message is the rest of a sentence that begins with the setting's name."""
        rules: list[_Rule | None] = []
        for split in _SPLITTER.finditer(text.strip()):
            match = re.match(_RULE, split[1])
            if match is None or match.end() != len(split[1]):
                raise ValueError(f"has an invalid rule, {split[1]!r}")
            if match[1] is not None:
                rules.append(None)
            elif match[2] is not None:
                try:
                    pattern = re.compile(match[2])
                except re.error as problem:
                    raise ValueError(f"has the rule {split[1]!r}, whose pattern is malformed: {problem}") from None
                rules.append(_Rule(pattern=pattern, replacement=match[3], case=match[4]))
        return cls(rules=tuple(rules))

    def name(self, subject: str) -> str | None:
        """The name of the principal with a certificate's subject (RFC 2253); None if no rule matches."""
        for rule in self.rules:
            found = subject if rule is None else rule.apply(subject)
            if found is not None:
                return found
        return None


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate (DER) as text of RFC 2253, in the form of Java: `CN=alice,O=Example`.

    Raises UsageError without the package `cryptography`, ValueError for a malformed certificate.
    """
    require("cryptography", "client certificates")
    from cryptography import x509

    names = x509.load_der_x509_certificate(certificate).subject.rdns
    return ",".join("+".join(_attributes(name)) for name in reversed(names))


def _attributes(name: Any) -> Iterator[str]:
    """Yield the attributes of one name; those without a name in RFC 2253 are hexadecimal."""
    from cryptography import x509

    for attribute in name:
        key = attribute.oid.dotted_string
        if key in _NAMES:
            text = _ESCAPED.sub(lambda found: "".join(f"\\{one}" for one in found[0]), attribute.value)
            yield f"{_NAMES[key]}={text}"
        else:
            value = attribute.value if isinstance(attribute.value, bytes) else attribute.value.encode()
            encoded = x509.Name([attribute]).public_bytes()
            at = encoded.rindex(value) - 2  # its tag and its length, of one byte up to 127
            yield f"{key}=#{encoded[at:].hex()}"
