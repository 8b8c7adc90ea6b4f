package shop;

import java.io.IOException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;

/** {@code FILTER LINES}: prints how many lines of a text file may be in the filter, and how many are not. */
public final class SparkJob {
    public static void main(String[] arguments) throws IOException {
        try (SparkSession spark = SparkSession.builder().appName("seen").getOrCreate()) {
            spark.udf().register("seen", new SeenUdf(arguments[0]), DataTypes.BooleanType);
            spark.read().text(arguments[1]).createOrReplaceTempView("lines");
            for (var row : spark.sql("SELECT seen(value), count(*) FROM lines GROUP BY 1 ORDER BY 1").collectAsList()) {
                System.out.println("seen " + row.get(0) + ": " + row.get(1));
            }
        }
    }
}
