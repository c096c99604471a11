package fila

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// Causes that are the client's own; the broker's are beside them (ErrQueueNotFound and so on).
var (
	// ErrConnectFailed: the broker could not be reached. Nothing was sent.
	ErrConnectFailed = errors.New("fila: connect failed")
	// ErrConnectionLost: the connection broke before the answer came. The request may or may not
	// have been carried out.
	ErrConnectionLost = errors.New("fila: connection lost")
	// ErrTimeout: no answer in time. The request may or may not have been carried out.
	ErrTimeout = errors.New("fila: timeout")
	// ErrClosed: the client or consumer was closed or drained.
	ErrClosed = errors.New("fila: closed")
	// ErrInvalidArgument: the SDK refused to send it.
	ErrInvalidArgument = errors.New("fila: invalid argument")
)

// Code is the broker's number for a cause; see spec/errors.json.
type Code uint8

// String is the code's name in the catalogue, such as QueueNotFound.
func (c Code) String() string {
	if c == CodeNone {
		return "None"
	}
	return wire.CauseOf(uint8(c)).Name
}

// Error is what every failing call returns, wrapped or not. Ask for its cause with [errors.Is] and
// one of the sentinels, or for its details with [errors.As].
type Error struct {
	// Op is what was asked, such as `enqueue` or `create queue "orders"`.
	Op string
	// Code is the broker's code, CodeNone if the broker did not answer.
	Code Code
	// Message is the broker's text, or the client's own.
	Message string
	// Metadata is what the broker added, such as retry_after_ms or leader_addr. May be nil.
	Metadata map[string]string

	sentinel error
	inner    error
	sent     bool // it failed after it was sent, and not by the broker's verdict
}

// Error is the text a person reads: what was asked and why it failed.
func (e *Error) Error() string {
	if e.Op == "" {
		return "fila: " + e.Message
	}
	return "fila: " + e.Op + ": " + e.Message
}

// Unwrap gives the sentinel, and the error underneath if there is one.
func (e *Error) Unwrap() []error {
	if e.inner == nil {
		return []error{e.sentinel}
	}
	return []error{e.sentinel, e.inner}
}

// Retryable reports whether the same call may succeed later.
//
// After a lost connection or a timeout the first attempt may have been carried out already, see
// [Error.MaybeApplied]: a repeated enqueue is then stored twice unless it has an idempotency key.
func (e *Error) Retryable() bool {
	switch {
	case e.Code != CodeNone:
		return wire.CauseOf(uint8(e.Code)).Retryable
	case errors.Is(e.inner, context.Canceled): // a Dial that was given up
		return false
	}
	return e.sentinel == ErrConnectFailed || e.sentinel == ErrConnectionLost || e.sentinel == ErrTimeout
}

// MaybeApplied reports whether the broker may have carried the call out although it failed.
func (e *Error) MaybeApplied() bool {
	return e.sent || e.sentinel == ErrConnectionLost || e.sentinel == ErrTimeout || e.sentinel == context.Canceled
}

// RetryAfter is how long the broker asks to wait before the next attempt, 0 if it does not say.
func (e *Error) RetryAfter() time.Duration {
	ms, err := strconv.ParseUint(e.Metadata["retry_after_ms"], 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// LeaderAddr is the address of the node that leads the queue, if a NotLeader error named one.
func (e *Error) LeaderAddr() string { return e.Metadata["leader_addr"] }

// Retryable reports whether err is an [*Error] whose call may succeed later.
func Retryable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Retryable()
}

// BatchError says that some items of a call failed; the others went through.
type BatchError struct {
	// Errs has one entry for each item, in order: nil where it worked.
	Errs []error
}

// Error counts the failures and tells the first.
func (e *BatchError) Error() string {
	failed := e.Unwrap()
	if len(failed) == 0 {
		return "no item failed"
	}
	return fmt.Sprintf("%d of %d items failed; first: %v", len(failed), len(e.Errs), failed[0])
}

// Unwrap gives the failures without the items that worked.
func (e *BatchError) Unwrap() []error {
	var failed []error
	for _, err := range e.Errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// brokerError is the error for a code of the broker's. Without the broker's own text, subject says
// what it met.
func brokerError(op string, code uint8, message, subject string, metadata map[string]string) *Error {
	sentinel := sentinels[Code(code)]
	if sentinel == nil {
		code, sentinel = wire.CodeInternalError, ErrInternal
	}
	if message == "" {
		message = textFor(code, subject)
	}
	return &Error{Op: op, Code: Code(code), Message: message, Metadata: metadata, sentinel: sentinel}
}

func textFor(code uint8, subject string) string {
	switch {
	case subject == "":
		return wire.CauseOf(code).Meaning
	case code == wire.CodeQueueNotFound:
		return subject + " does not exist"
	case code == wire.CodeQueueAlreadyExists:
		return subject + " already exists"
	}
	return subject + ": " + wire.CauseOf(code).Meaning
}

func settlementError(op string, code uint8, queue, id string) *Error {
	switch code {
	case wire.CodeMessageNotFound:
		return brokerError(op, code, fmt.Sprintf("message %q is not leased from queue %q by this client: "+
			"it was settled already, its lease ran out, or it never existed", id, queue), "", nil)
	case wire.CodeQueueNotFound:
		return brokerError(op, code, "", fmt.Sprintf("queue %q", queue), nil)
	}
	return brokerError(op, code, "", fmt.Sprintf("message %q of queue %q", id, queue), nil)
}

func clientError(op string, sentinel error, inner error, format string, args ...any) *Error {
	return &Error{Op: op, Message: fmt.Sprintf(format, args...), sentinel: sentinel, inner: inner}
}

func invalid(op string, err error) *Error {
	return &Error{Op: op, Message: err.Error(), sentinel: ErrInvalidArgument, inner: err}
}

func protocolError(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidFrame, Message: fmt.Sprintf(format, args...), sentinel: ErrInvalidFrame}
}

// during is a copy of an error that ended many calls, with what this call was about.
func (e *Error) during(op string) *Error {
	copied := *e
	copied.Op = op
	return &copied
}

// permanent reports whether connecting again cannot help.
func (e *Error) permanent() bool {
	return e.Code == CodeUnauthorized || e.Code == CodeForbidden || e.Code == CodeUnsupportedVersion
}

// transient reports whether the broker may accept the same request in a moment.
func (e *Error) transient() bool {
	return e.Code == CodeChannelFull || e.Code == CodeNodeNotReady || e.Code == CodeNotLeader
}
