package shop;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** One connection to Redis or Valkey: commands go, whole numbers and short texts come back. */
final class Resp implements Closeable {
    private final Socket socket = new Socket();
    private final InputStream in;
    private final int patienceMillis;
    private long deadline;

    Resp(String host, int port, int patienceMillis) throws IOException {
        socket.connect(new InetSocketAddress(host, port), patienceMillis);
        socket.setTcpNoDelay(true);
        this.patienceMillis = patienceMillis;
        in = new BufferedInputStream(socket.getInputStream());
    }

    /** The lines of the answer: one, or those of a list. */
    String[] ask(String... words) throws IOException {
        var command = new ByteArrayOutputStream();
        command.writeBytes(("*" + words.length + "\r\n").getBytes(StandardCharsets.UTF_8));
        for (String word : words) {
            byte[] bytes = word.getBytes(StandardCharsets.UTF_8);
            command.writeBytes(("$" + bytes.length + "\r\n").getBytes(StandardCharsets.UTF_8));
            command.writeBytes(bytes);
            command.writeBytes(new byte[] {'\r', '\n'});
        }
        deadline = System.nanoTime() + patienceMillis * 1_000_000L;
        socket.getOutputStream().write(command.toByteArray());
        String first = line("+-:*");
        if (!first.startsWith("*")) {
            return new String[] {first};
        }
        var list = new String[Integer.parseInt(first.substring(1))];
        for (int i = 0; i < list.length; i++) {
            list[i] = line("+-:");
        }
        return list;
    }

    private String line(String kinds) throws IOException {
        var bytes = new ByteArrayOutputStream();
        for (int c; (c = read()) != '\n'; bytes.write(c)) {
            if (c < 0) {
                throw new EOFException("the connection ended in the middle of an answer");
            }
        }
        String line = bytes.toString(StandardCharsets.UTF_8).stripTrailing();
        if (line.isEmpty() || kinds.indexOf(line.charAt(0)) < 0) {
            throw new IOException("expected an answer of a kind " + kinds + ", got " + line);
        }
        return line;
    }

    /** The whole answer has a deadline: one byte now and then must not hold a thread. */
    private int read() throws IOException {
        socket.setSoTimeout((int) Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
        return in.read();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
