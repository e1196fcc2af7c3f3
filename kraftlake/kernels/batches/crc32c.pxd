cdef extern from "crc32c.h" nogil:
    unsigned int kraftlake_crc32c(const unsigned char *p, size_t size, int with_instruction)
