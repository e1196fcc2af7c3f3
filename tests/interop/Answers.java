/**
 * Answers each line of stdin with a line of JSON on stdout, until stdin ends. What Kafka's classes print goes to stderr.
 *
 * `kafka_classes.py` adds this class to the file of each helper, so it names classes of other packages in full.
 */
abstract class Answers {
    static final com.fasterxml.jackson.databind.ObjectMapper JSON = new com.fasterxml.jackson.databind.ObjectMapper();

    /** The answer to a line's fields, which tabs part. What it throws is answered as `error`, with its stack. */
    abstract Object answer(String[] fields) throws Exception;

    void serve() throws Exception {
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        java.io.BufferedReader in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Object answer;
            try {
                answer = answer(line.split("\t"));
            } catch (Throwable fault) {
                java.io.StringWriter stack = new java.io.StringWriter();
                fault.printStackTrace(new java.io.PrintWriter(stack));
                answer = java.util.Collections.singletonMap("error", stack.toString());
            }
            out.println(JSON.writeValueAsString(answer));
        }
        end();
    }

    void end() {
        System.exit(0); // Kafka's classes have threads that are no daemons
    }
}
