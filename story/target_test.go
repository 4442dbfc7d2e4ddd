package story

import (
	"testing"

	"tandem/workflow"
)

func TestSignalOf(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"wait_type":"signal","signal_name":"go"}`: "go", `{"wait_type":"event","signal_name":"e"}`: "e", `{"wait_type":"signal","signal_name":"{{x}}"}`: "",
		`{"wait_type":"timer"}`: cancelSignal, `{}`: cancelSignal,
	} {
		if got := signalOf(workflow.SignalsNamed, []byte(config)); got != want {
			t.Errorf("%s waits for %q, want %q", config, got, want)
		}
	}
	if got := signalOf(workflow.SignalsCancel, []byte(`{"wait_type":"signal","signal_name":"go"}`)); got != cancelSignal {
		t.Errorf("a delay waits for %q", got)
	}
}
