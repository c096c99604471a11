package main

import (
	"context"
	"errors"
	"fmt"

	fila "github.com/faiscadev/fila/sdks/go"
)

type notImplemented string

func (op notImplemented) Error() string { return fmt.Sprintf("no operation %q", string(op)) }

var causes = []struct {
	cause error
	code  string
}{
	{context.Canceled, "Cancelled"},
	{fila.ErrConnectFailed, "ConnectFailed"},
	{fila.ErrConnectionLost, "ConnectionLost"},
	{fila.ErrTimeout, "Timeout"},
	{fila.ErrClosed, "ClientClosed"},
	{fila.ErrInvalidArgument, "InvalidArgument"},
}

func describe(err error) object {
	var e *fila.Error
	var missing notImplemented
	switch {
	case errors.As(err, &missing):
		return object{"code": "NotImplemented", "message": err.Error(), "retryable": false, "metadata": object{}}
	case errors.Is(err, context.Canceled) && !errors.As(err, &e):
		return object{"code": "Cancelled", "message": err.Error(), "retryable": false, "metadata": object{}}
	case !errors.As(err, &e):
		return object{"code": "Unexpected", "message": err.Error(), "retryable": false, "metadata": object{}}
	}
	code := e.Code.String()
	if e.Code == fila.CodeNone {
		code = "Unexpected"
		for _, known := range causes {
			if errors.Is(e, known.cause) {
				code = known.code
				break
			}
		}
	}
	metadata := e.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return object{"code": code, "message": e.Error(), "retryable": e.Retryable(), "metadata": metadata}
}

// results are what became of the items of one call.
func results(n int, err error) object {
	all := make([]object, n)
	for i := range all {
		all[i] = object{}
	}
	var batch *fila.BatchError
	switch {
	case errors.As(err, &batch):
		for i, err := range batch.Errs {
			if err != nil {
				all[i] = object{"error": describe(err)}
			}
		}
	case err != nil:
		for i := range all {
			all[i] = object{"error": describe(err)}
		}
	}
	return object{"results": all}
}
