module github.com/faiscadev/fila/sdks/go

go 1.23
