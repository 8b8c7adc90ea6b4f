package shop;

import java.io.IOException;
import java.net.URI;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.stereotype.Component;

/** Puts the parts together. In Spring 5.2 or newer it is a @Configuration(proxyBeanMethods = false). */
@Component
public class Shop {
    private static final int ROWS = 100_000;
    private static final double RATE = 0.001;
    private static final int PATIENCE_MILLIS = 1000;

    @Bean
    ProductTable table() {
        var table = new ProductTable();
        for (int i = 0; i < ROWS; i++) {
            table.save("product-" + i, "Product " + i);
        }
        return table;
    }

    /** Where the filter is: local, guava, http://127.0.0.1:7654/v1/filters/NAME or redis://127.0.0.1:6379/NAME. */
    @Bean
    SeenFilter filter(@Value("${filter}") String where, @Value("${token:}") String token, ProductTable table)
            throws IOException {
        if (where.startsWith("http")) {
            return new HttpFilter(where, token, PATIENCE_MILLIS);
        }
        if (where.startsWith("redis")) {
            URI uri = URI.create(where);
            var filter = new RedisFilter(uri.getHost(), uri.getPort(), uri.getPath().substring(1), PATIENCE_MILLIS);
            filter.fill(ROWS, RATE, table.ids());
            return filter;
        }
        SeenFilter filter = where.equals("guava") ? new GuavaFilter(ROWS, RATE) : new LocalFilter(ROWS, RATE);
        for (String id : table.ids()) {
            filter.add(id);
        }
        return filter;
    }

    public static void main(String[] arguments) throws IOException {
        try (var context = new AnnotationConfigApplicationContext(Shop.class, Products.class)) {
            Products products = context.getBean(Products.class);
            ProductTable table = context.getBean(ProductTable.class);
            products.save("lamp", "A lamp");
            System.out.println("lamp: " + products.find("lamp").orElse("not found"));
            System.out.println("product-4711: " + products.find("product-4711").orElse("not found"));
            table.asked.reset();
            for (int i = 0; i < 10_000; i++) {
                products.find("no-such-" + i);
            }
            System.out.printf("10,000 ids that don't exist: %d turned away, %d reached the table, %d undecided%n",
                    products.turnedAway.sum(), table.asked.sum(), products.undecided.sum());
        }
    }
}
