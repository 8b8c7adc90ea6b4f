package shop;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A filter of tamis serve, shared by any number of processes. */
public final class HttpFilter implements SeenFilter {
    private final String filter;
    private final String token;
    private final int patienceMillis;
    private final HttpClient client = HttpClient.newHttpClient();

    /** The filter, as http://127.0.0.1:7654/v1/filters/products, and the token with which keys are added. */
    public HttpFilter(String filter, String token, int patienceMillis) {
        this.filter = filter;
        this.token = token;
        this.patienceMillis = patienceMillis;
    }

    @Override
    public boolean mightContain(String key) throws IOException {
        String answer = post("/check", key);
        switch (answer) {
            case "{\"found\":[true]}":
                return true;
            case "{\"found\":[false]}":
                return false;
            default:
                throw new IOException(filter + ": expected an answer for one key, got " + answer);
        }
    }

    @Override
    public void add(String key) throws IOException {
        String answer = post("/add", key);
        if (!answer.endsWith("\"saved\":true}")) {
            throw new IOException(filter + ": expected a key on disk, got " + answer);
        }
    }

    private String post(String what, String key) throws IOException {
        var request = HttpRequest.newBuilder(URI.create(filter + what))
                .header("Content-Type", "application/json")
                .header("Authorization", "Bearer " + token)
                .POST(HttpRequest.BodyPublishers.ofString("[" + quoted(key) + "]"))
                .build();
        var sent = client.sendAsync(request, BodyHandlers.ofString());
        try {
            // Not HttpRequest's timeout: it ends with the head of the answer, and the body may stall.
            var answer = sent.get(patienceMillis, TimeUnit.MILLISECONDS);
            if (answer.statusCode() != 200) {
                throw new IOException(filter + ": expected 200, got " + answer.statusCode() + " " + answer.body());
            }
            return answer.body().strip();
        } catch (ExecutionException | TimeoutException e) {
            throw new IOException(filter + ": no answer", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException(filter + ": interrupted");
        } finally {
            sent.cancel(true);
        }
    }

    /** As a JSON string; any JSON library does the same. */
    private static String quoted(String key) {
        var json = new StringBuilder("\"");
        for (char c : key.toCharArray()) {
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < ' ') {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }
}
