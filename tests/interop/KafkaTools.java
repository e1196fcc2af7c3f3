import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.utils.internals.Exit;

/**
 * Kafka's command-line tools, one after another in one JVM: one request a line on stdin, one JSON object a line on
 * stdout.
 *
 *   run CLASS ARGUMENTS STDIN    calls main of the class; the arguments are a JSON array, STDIN a JSON string
 *
 * The answer has `out`, `err` and `code`. The language is what Janino compiles.
 */
public class KafkaTools {

    /** What tools do at the end of their JVM, such as to send what they have not sent yet. */
    static List hooks = new ArrayList();

    /** The code of the first end of the tool; tools catch what ends them, print it, and end once more. */
    static Integer ended;

    /** What a tool ends itself with. */
    static class Ended extends Error {
        Ended() {
            super("", null, false, false);
        }

        public void printStackTrace(PrintStream out) {
        }

        public void printStackTrace(java.io.PrintWriter out) {
        }
    }

    static Map run(String name, List arguments, String stdin) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        InputStream in = System.in;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        ByteArrayOutputStream faults = new ByteArrayOutputStream();
        int code = 0;
        ended = null;
        System.setOut(new PrintStream(said, true, "UTF-8"));
        System.setErr(new PrintStream(faults, true, "UTF-8"));
        System.setIn(new ByteArrayInputStream(stdin.getBytes("UTF-8")));
        try {
            String[] words = new String[arguments.size()];
            for (int at = 0; at < words.length; at++) {
                words[at] = String.valueOf(arguments.get(at));
            }
            Class tool = Class.forName(name);
            tool.getMethod("main", new Class[] {String[].class}).invoke(null, new Object[] {words});
        } catch (InvocationTargetException thrown) {
            if (ended == null) {
                code = -1;
                thrown.getCause().printStackTrace();
            }
        } finally {
            for (int at = 0; at < hooks.size(); at++) {
                ((Runnable) hooks.get(at)).run();
            }
            hooks.clear();
            System.out.flush();
            System.err.flush();
            System.setOut(out);
            System.setErr(err);
            System.setIn(in);
        }
        if (ended != null) {
            code = ended.intValue();
        }
        Map answer = new LinkedHashMap();
        answer.put("out", said.toString("UTF-8"));
        answer.put("err", faults.toString("UTF-8"));
        answer.put("code", Integer.valueOf(code));
        return answer;
    }

    public static void main(String[] args) throws Exception {
        Exit.Procedure end = new Exit.Procedure() {
            public void execute(int code, String message) {
                if (ended == null) {
                    ended = Integer.valueOf(code);
                }
                throw new Ended();
            }
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder(new Exit.ShutdownHookAdder() {
            public void addShutdownHook(String name, Runnable hook) {
                hooks.add(hook);
            }
        });
        new Answers() {
            Object answer(String[] fields) throws Exception {
                return run(fields[1], (List) JSON.readValue(fields[2], List.class), (String) JSON.readValue(fields[3], String.class));
            }

            void end() {
                Runtime.getRuntime().halt(0); // hooks of the tools have run
            }
        }.serve();
    }
}
