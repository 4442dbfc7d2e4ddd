package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestEngine_SaysWhatIsWrong: commands that cannot run on Temporal as they were called say what to do.
func TestEngine_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want string
	}{
		{"serve --engine temporal", "--database"},
		{"serve --engine steam", "use local or temporal"},
		{"worker", "--database"},
		{"worker --database postgres://nobody@127.0.0.1:1/none --data DIR", "TANDEM_MASTER_KEY"},
		{"serve --engine temporal --database postgres://nobody@127.0.0.1:1/none --data DIR --addr 127.0.0.1:0 --temporal-tls-key DIR/none", "--temporal-tls-cert"},
		{"serve --engine temporal --database postgres://nobody@127.0.0.1:1/none --data DIR --addr 127.0.0.1:0 --temporal-tls-ca DIR/none", "the file of --temporal-tls-ca"},
		{"doctor --engine temporal --database postgres://nobody@127.0.0.1:1/none --data DIR --temporal-api-key-file DIR/none", "the file of --temporal-api-key-file"},
		{"doctor --engine temporal --database postgres://nobody@127.0.0.1:1/none --data DIR --temporal-address 127.0.0.1:1", "Temporal at 127.0.0.1:1 cannot be reached"},
	} {
		out, err := exec.CommandContext(t.Context(), "tandem", strings.Fields(strings.ReplaceAll(c.args, "DIR", t.TempDir()))...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("tandem %s: %v\n%s", c.args, err, out)
		}
	}
}

// TestEngine_TLSVariable: a word that says neither yes nor no does not leave TLS out.
func TestEngine_TLSVariable(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"maybe": "TANDEM_TEMPORAL_TLS is \"maybe\"", "2": "set it to 1 or 0",
		"on": "cannot be reached", "TRUE": "cannot be reached", "No": "cannot be reached", "": "cannot be reached",
	} {
		cmd := exec.CommandContext(t.Context(), "tandem", "doctor", "--engine", "temporal", "--database", "postgres://nobody@127.0.0.1:1/none", "--data", t.TempDir(),
			"--temporal-address", "127.0.0.1:1")
		cmd.Env = append(os.Environ(), "TANDEM_TEMPORAL_TLS="+value)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v\n%s", value, err, out)
		}
	}
}
