package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tandem/cluster"
	"tandem/console"
)

// temporalFlags say where Temporal is, and how it is reached.
type temporalFlags struct{ o cluster.Options }

func (t *temporalFlags) addTemporalFlags(flags *pflag.FlagSet) {
	text := func(into *string, name, variable, usual, help string) {
		flags.StringVar(into, name, cmp.Or(os.Getenv(variable), usual), help+" ("+variable+")")
	}
	text(&t.o.Address, "temporal-address", "TANDEM_TEMPORAL_ADDRESS", cluster.DefaultAddress, "where Temporal listens, as HOST:PORT")
	text(&t.o.Namespace, "temporal-namespace", "TANDEM_TEMPORAL_NAMESPACE", cluster.DefaultNamespace, "the namespace in Temporal")
	text(&t.o.TaskQueue, "task-queue", "TANDEM_TASK_QUEUE", cluster.DefaultTaskQueue,
		"the task queue of this installation in Temporal, the same for its servers and workers and for nothing else")
	s := &t.o.Security
	wanted, _ := tlsWanted() // temporalOptions returns the error
	flags.BoolVar(&s.TLS, "temporal-tls", wanted, "reach Temporal with TLS, as each of the following does, too (TANDEM_TEMPORAL_TLS=1)")
	text(&s.Cert, "temporal-tls-cert", "TANDEM_TEMPORAL_TLS_CERT", "", "a file with the certificate that this process shows Temporal, as PEM")
	text(&s.Key, "temporal-tls-key", "TANDEM_TEMPORAL_TLS_KEY", "", "a file with the key of that certificate, as PEM")
	text(&s.CA, "temporal-tls-ca", "TANDEM_TEMPORAL_TLS_CA", "", "a file with the authorities that Temporal's certificate may be from, as PEM; by default those of the machine")
	text(&s.ServerName, "temporal-tls-server-name", "TANDEM_TEMPORAL_TLS_SERVER_NAME", "", "the name that Temporal's certificate is for; by default the host of its address")
	text(&s.APIKeyFile, "temporal-api-key-file", "TANDEM_TEMPORAL_API_KEY_FILE", "", "a file with a key that is sent to Temporal; TANDEM_TEMPORAL_API_KEY is the key itself")
}

// temporalOptions returns where Temporal is, with the key that no command line has.
func (t *temporalFlags) temporalOptions() (cluster.Options, error) {
	if _, err := tlsWanted(); err != nil {
		return t.o, err
	}
	o := t.o
	o.Security.APIKey = os.Getenv("TANDEM_TEMPORAL_API_KEY")
	return o, nil
}

// tlsWanted says whether the environment wants TLS. A word that says neither must not leave it out.
func tlsWanted() (bool, error) {
	const variable = "TANDEM_TEMPORAL_TLS"
	given := os.Getenv(variable)
	switch strings.ToLower(given) {
	case "1", "true", "yes", "on":
		return true, nil
	case "", "0", "false", "no", "off":
		return false, nil
	}
	return false, console.Usage(fmt.Errorf("%s is %q, which is neither yes nor no; set it to 1 or 0", variable, given))
}

// isYes says that a variable of the environment switches something on.
func isYes(variable string) bool {
	return slices.Contains([]string{"1", "true", "yes"}, os.Getenv(variable))
}

// engineFlags say what executions run on.
type engineFlags struct {
	engine string
	temporalFlags
}

func (e *engineFlags) addEngineFlags(flags *pflag.FlagSet) {
	flags.StringVar(&e.engine, "engine", cmp.Or(os.Getenv("TANDEM_ENGINE"), "local"), "what executions run on: local, this process, or temporal, the workers of a Temporal cluster (tandem worker), which needs --database (TANDEM_ENGINE)")
	e.temporalFlags.addTemporalFlags(flags)
}

// engineOptions returns where Temporal is; nil: executions run in this process.
func (e *engineFlags) engineOptions(database string) (*cluster.Options, error) {
	switch e.engine {
	case "local":
		return nil, nil
	case "temporal":
		if database == "" {
			return nil, console.Usage(fmt.Errorf("--engine temporal needs a database that servers and workers share; name one of PostgreSQL with --database (TANDEM_DATABASE)"))
		}
		o, err := e.temporalFlags.temporalOptions()
		if err != nil {
			return nil, err
		}
		return &o, nil
	}
	return nil, console.Usage(fmt.Errorf("--engine %q is not known; use local or temporal", e.engine))
}
