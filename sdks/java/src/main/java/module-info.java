/** The Java client of the Fila message broker. */
module dev.faisca.fila {
    exports dev.faisca.fila;
}
