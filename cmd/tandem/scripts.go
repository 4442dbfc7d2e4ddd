package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/builtin/code"
	"tandem/console"
)

// scriptFlags are what an operator allows of host processes.
type scriptFlags struct {
	allow                  bool
	interpreters, commands string
}

func (f *scriptFlags) addScriptFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.allow, "allow-scripts", isYes("TANDEM_ALLOW_SCRIPTS"), "let nodes run host processes with this user's rights (TANDEM_ALLOW_SCRIPTS)")
	flags.StringVar(&f.interpreters, "script-interpreters", os.Getenv("TANDEM_SCRIPT_INTERPRETERS"), "interpreters that scripts may use, as name or name=path, separated by commas, or none; by default those installed (TANDEM_SCRIPT_INTERPRETERS)")
	flags.StringVar(&f.commands, "script-commands", os.Getenv("TANDEM_SCRIPT_COMMANDS"), "commands that nodes may run by name, as path or name=path, separated by commas (TANDEM_SCRIPT_COMMANDS)")
}

// readScripts returns what is allowed, nil when nothing is.
func (f *scriptFlags) readScripts() (*code.Scripts, error) {
	if !f.allow {
		if f.interpreters != "" || f.commands != "" {
			return nil, console.Usage(errors.New("--script-interpreters and --script-commands are of no use without --allow-scripts"))
		}
		return nil, nil
	}
	s, err := app.ParseScripts(f.interpreters, f.commands)
	if err != nil {
		return nil, console.Usage(errors.New(sayError(err)))
	}
	return s, nil
}
