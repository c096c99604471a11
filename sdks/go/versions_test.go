package fila_test

import (
	"errors"
	"testing"

	fila "github.com/faiscadev/fila/sdks/go"
)

func TestAQueueIsChangedWhileItWorksAndBroughtBack(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{MaxAttempts: 7})
	version, err := client.UpdateQueue(soon(t), q, fila.QueueUpdate{
		Settings: map[string]string{"max_attempts": "3", "fail_mode": "reject"}, ExpectedVersion: 1, Note: "fewer",
	})
	must(t, err)
	found, err := client.GetQueue(soon(t), q, 0)
	must(t, err)
	if version != 2 || found.Version != 2 || found.Note != "fewer" || found.MadeAt.IsZero() ||
		found.Settings["max_attempts"] != "3" || found.Settings["fail_mode"] != "reject" {
		t.Errorf("version %d, %+v", version, found)
	}
	_, err = client.UpdateQueue(soon(t), q, fila.QueueUpdate{ExpectedVersion: 1, Settings: map[string]string{"max_attempts": "4"}})
	if !errors.Is(err, fila.ErrVersionConflict) {
		t.Errorf("somebody else was faster: %v", err)
	}
	_, err = client.UpdateQueue(soon(t), q, fila.QueueUpdate{Settings: map[string]string{"colour": "red"}})
	if !errors.Is(err, fila.ErrInvalidConfigValue) {
		t.Errorf("a setting that is none: %v", err)
	}
	version, err = client.UpdateQueue(soon(t), q, fila.QueueUpdate{FromVersion: 1})
	must(t, err)
	first, err := client.GetQueue(soon(t), q, 1)
	must(t, err)
	versions, err := client.ListVersions(soon(t), q)
	must(t, err)
	if version != 3 || first.Settings["max_attempts"] != "7" || len(versions) != 3 ||
		len(versions[1].Changed) != 2 || versions[1].Note != "fewer" {
		t.Errorf("version %d, first %+v, versions %+v", version, first, versions)
	}
}
