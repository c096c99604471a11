package dev.faisca.fila;

/**
 * Something an API key may do.
 *
 * @param kind {@code produce}, {@code consume} or {@code admin}
 * @param pattern a queue's name, {@code prefix.*} or {@code *}
 */
public record Permission(String kind, String pattern) {}
