package shop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A filter in Redis or Valkey with a module that has BF.*, shared by any number of processes. */
public final class RedisFilter implements SeenFilter {
    /** Added last, when every key is there: a filter without it is lost or half filled. No id begins with NUL. */
    private static final String FILLED = "\0filled";

    private final String host;
    private final int port;
    private final String name;
    private final int patienceMillis;
    private Resp connection;

    public RedisFilter(String host, int port, String name, int patienceMillis) {
        this.host = host;
        this.port = port;
        this.name = name;
        this.patienceMillis = patienceMillis;
    }

    @Override
    public boolean mightContain(String key) throws IOException {
        String[] found = ask("BF.MEXISTS", name, key, FILLED);
        if (found.length != 2 || !found[1].equals(":1")) {
            throw new IOException(name + ": lost or not filled yet: " + String.join(" ", found));
        }
        switch (found[0]) {
            case ":1":
                return true;
            case ":0":
                return false;
            default:
                throw new IOException(name + ": expected 0 or 1, got " + found[0]);
        }
    }

    @Override
    public void add(String key) throws IOException {
        insert(List.of(key));
    }

    /** Makes the filter and adds the table's ids, once. Whoever saves a row meanwhile adds its id. */
    public void fill(long capacity, double rate, Iterable<String> ids) throws IOException {
        if (ask("BF.EXISTS", name, FILLED)[0].equals(":1")) {
            return;
        }
        String made = ask("BF.RESERVE", name, String.valueOf(rate), String.valueOf(capacity))[0];
        if (!made.equals("+OK") && !made.contains("exists")) {
            throw new IOException(name + ": " + made);
        }
        var batch = new ArrayList<String>();
        for (String id : ids) {
            batch.add(id);
            if (batch.size() == 1000) {
                insert(batch);
                batch.clear();
            }
        }
        batch.add(FILLED);
        insert(batch);
    }

    /** NOCREATE: a lost filter must not come back empty. */
    private void insert(List<String> keys) throws IOException {
        var words = new ArrayList<>(List.of("BF.INSERT", name, "NOCREATE", "ITEMS"));
        words.addAll(keys);
        String[] added = ask(words.toArray(String[]::new));
        if (added.length != keys.size() || !Arrays.stream(added).allMatch(answer -> answer.matches(":[01]"))) {
            throw new IOException(name + ": not added: " + String.join(" ", added));
        }
    }

    /** After a failure the connection is closed: the late answer to one question must not answer the next. */
    private synchronized String[] ask(String... words) throws IOException {
        if (connection == null) {
            connection = new Resp(host, port, patienceMillis);
        }
        try {
            return connection.ask(words);
        } catch (IOException | RuntimeException e) {
            connection.close();
            connection = null;
            throw e instanceof IOException ? (IOException) e : new IOException(name + ": no answer of Redis", e);
        }
    }
}
