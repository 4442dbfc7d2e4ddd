package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
	"tandem/gateway"
)

// mcpAbout is what "tandem mcp" says about itself.
const mcpAbout = `Without a command this is an MCP server on standard input and output, for clients that start their servers
themselves: every deployed workflow and every agent is a tool. Such a client is told to run

  tandem mcp --server http://127.0.0.1:8080      with TANDEM_TOKEN in its environment
  tandem mcp --data /path/to/data                 without a server

Clients that connect over HTTP need nothing of this: a server has it at /mcp, with its tokens.

A call that takes longer than --wait, or waits for a person, answers with the id of the execution, which goes on by itself; the
tools execution_status and execution_resume are for that. Over a data directory an execution goes on as long as this process
runs, and with the next one. A client that can put questions to its user is asked to.

"tandem mcp servers" is about the other direction: servers whose tools agents and workflows use.`

// mcpServeFlags are those of the server on standard input and output.
type mcpServeFlags struct{ wait time.Duration }

func (f *mcpServeFlags) addServeFlags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.wait, "wait", 25*time.Second, "how long a call waits for its execution to end")
}

// serveMCP is an MCP server on standard input and output until the client leaves.
func serveMCP(cmd *cobra.Command, at *connectFlags, f *mcpServeFlags) error {
	if f.wait <= 0 {
		return console.Usage(fmt.Errorf("--wait %v must be more than nothing", f.wait))
	}
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(in.Fd()) {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), "This is for programs: an MCP server that waits for messages on standard input. See: tandem mcp --help"); err != nil {
			return console.Problem(err)
		}
	}
	return at.driving(cmd, false, func(ctx context.Context, c *app.Connection) error {
		s := gateway.New(c.Client, gateway.Options{Version: version, Wait: f.wait, TakeUp: c.TakeUp})
		defer s.Close()
		return s.ServeIO(ctx, cmd.InOrStdin(), cmd.OutOrStdout())
	})
}
