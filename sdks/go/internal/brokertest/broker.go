// Package brokertest runs real brokers for the tests.
package brokertest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const ready = 60 * time.Second

// Broker is a fila-server process with a data directory of its own. It keeps its port across
// restarts, so that clients find it again.
type Broker struct {
	Addr string
	dir  string
	env  []string
	cmd  *exec.Cmd
}

// Start runs a broker in dir; env adds settings such as FILA_AUTH__BOOTSTRAP_APIKEY=….
func Start(dir string, env ...string) (*Broker, error) {
	b := &Broker{dir: dir, env: env}
	return b, b.Restart()
}

// Restart starts the broker on its data directory. It must not be running.
func (b *Broker) Restart() error {
	if b.Addr == "" {
		probe, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		b.Addr = probe.Addr().String()
		probe.Close()
	}
	portFile := filepath.Join(b.dir, "port")
	os.Remove(portFile)
	log, err := os.OpenFile(b.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	b.cmd = exec.Command(binary())
	b.cmd.Dir = b.dir
	b.cmd.Stdout, b.cmd.Stderr = log, log
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "FILA_") {
			b.cmd.Env = append(b.cmd.Env, entry)
		}
	}
	b.cmd.Env = append(b.cmd.Env, "FILA_SERVER__LISTEN_ADDR="+b.Addr, "FILA_PORT_FILE="+portFile,
		"FILA_DATA_DIR="+filepath.Join(b.dir, "data"))
	b.cmd.Env = append(b.cmd.Env, b.env...)
	if err := b.cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s (set FILA_SERVER_BIN, or run `make setup` in the repository): %w", binary(), err)
	}
	for end := time.Now().Add(ready); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(portFile); err == nil {
			return nil
		}
		if b.cmd.Process.Signal(syscall.Signal(0)) != nil || exited(b.cmd) {
			break
		}
	}
	text, _ := os.ReadFile(b.logFile())
	b.Kill()
	return fmt.Errorf("the broker did not start:\n%s", text)
}

func exited(cmd *exec.Cmd) bool {
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WNOHANG, nil)
	return err == nil && pid == cmd.Process.Pid
}

// Kill ends the process without warning.
func (b *Broker) Kill() { b.end(syscall.SIGKILL) }

// Stop lets the process end in order.
func (b *Broker) Stop() { b.end(syscall.SIGTERM) }

// Freeze stops the process without closing its connections; Thaw lets it go on.
func (b *Broker) Freeze() { b.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (b *Broker) Thaw() { b.cmd.Process.Signal(syscall.SIGCONT) }

func (b *Broker) end(signal syscall.Signal) {
	if b.cmd == nil || b.cmd.Process == nil {
		return
	}
	b.cmd.Process.Signal(syscall.SIGCONT)
	b.cmd.Process.Signal(signal)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	stop := context.AfterFunc(ctx, func() { b.cmd.Process.Kill() })
	b.cmd.Wait()
	stop()
	cancel()
	b.cmd = nil
}

func (b *Broker) logFile() string { return filepath.Join(b.dir, "log") }

// Root is the repository's directory.
func Root() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "..", "..")
}

func binary() string {
	if path := os.Getenv("FILA_SERVER_BIN"); path != "" {
		return path
	}
	return filepath.Join(Root(), ".venv", "bin", "fila-server")
}
