// Command tandem works on workflow files, runs and serves them, and looks after executions.
//
// Each subcommand has a file of its own and no logic besides showing things: what it does is in package app, and what it
// asks of executions and workflows goes through the API, of a server or of the data directory in this process.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"tandem/builtin/code"
	"tandem/console"
	"tandem/sandbox"
)

var version = "dev" // read-only; the linker sets it when a release is built

func main() {
	if sandbox.IsChild() {
		sandbox.Child()
	}
	if code.IsWarden() {
		code.Warden()
	}
	// Between two collections the heap may grow by what it holds. An engine that holds little would collect all the time;
	// this, which is never touched and so takes no memory, makes it wait for some tens of megabytes.
	ballast := make([]byte, 32<<20)
	code := execute()
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// The exit codes. Scripts rely on them.
const (
	exitOK      = 0
	exitProblem = 1   // the file has errors, or cannot be read
	exitUsage   = 2   // the command was called wrongly
	exitParked  = 130 // a run was interrupted and can be resumed
)

func execute() int {
	cmd, err := newRoot().ExecuteC()
	var problem console.ProblemError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, console.ErrReported):
		return exitProblem
	case errors.Is(err, console.ErrParked):
		return exitParked
	case errors.Is(err, console.ErrUnusable):
		return exitUsage
	case errors.As(err, &problem):
		fmt.Fprintf(cmd.ErrOrStderr(), "tandem: %v\n", err)
		return exitProblem
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "tandem: %v\nRun \"%s --help\" to see how it is used.\n", err, cmd.CommandPath())
	return exitUsage
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tandem",
		Short: "Check, draw and run workflows in which people, tools and models take turns",
		Long: `Tandem is a durable workflow engine. A workflow is a file, YAML or JSON, that lists
nodes (what is done) and connections (what follows what).

Files:
  tandem new issue_triage       begin with a template; without a name, list them
  tandem validate order.yaml    say what is wrong with it, and where
  tandem graph order.yaml       draw it as a Mermaid diagram
  tandem run order.yaml         run it here, durably, without a server
  tandem nodes FLOW.IF          explain a kind of node; without a kind, list them

A server, and what is kept in its data directory:
  tandem serve                  serve the API
  tandem worker                 run nodes on a Temporal cluster, for servers with --engine temporal
  tandem workflows list         keep workflows: apply, list, get, export, start, deploy, delete
  tandem triggers list          see what starts deployed workflows: next, history, replay
  tandem import FILE...         make workflows of files of n8n, Dify and older systems
  tandem executions list        look at executions and act on them: get, watch, logs, pause, retry, fork, delete, ...
  tandem inbox                  see the questions that wait for you, and answer them; also: tandem approve ID, tandem reject ID
  tandem agent run "GOAL"       give an agent a goal; also: keep agents with set, list, show, remove, tasks
  tandem chat AGENT             talk with an agent
  tandem me                     see who you are, and whether agents may act without asking you
  tandem users list             keep users: add, invite, role, disable, enable, remove
  tandem workspaces list        keep the workspaces of the installation: add, rename, delete
  tandem tokens list            keep API tokens: create, revoke
  tandem audit list             read who did what, when, from where; also: tandem audit export
  tandem limits                 see what a workspace may use and how long it keeps things: set, tidy
  tandem admin token            come in again on the machine of the data directory when every token is lost
  tandem export EXECUTION       write an execution down; with --fixture, so that it can be tested
  tandem freeze EXECUTION       make a workflow of a task that an agent has done
  tandem test order.tandem.json play recorded runs again, without a network, and say what is different
  tandem credentials list       keep keys and passwords, sealed: set, test, uses, authorize, rename, delete
  tandem profiles list          keep profiles of language models: set, test, get, delete
  tandem budgets list           see what models may spend, and raise it
  tandem memories list          see what memory nodes remember, and make them forget
  tandem mcp                    be an MCP server: every deployed workflow and every agent is a tool
  tandem mcp servers list       keep tool servers and use them: set, tools, activate, accept, authorize, ...
  tandem doctor                 find out what keeps Tandem from working here
  tandem recover                say what a data directory has lost, and go on without it
  tandem backup FILE            write everything that an installation keeps to a file, also while a server runs
  tandem restore FILE           make a data directory, or a database of PostgreSQL, of such a file
  tandem migrate                move the records of a data directory from SQLite to PostgreSQL
  tandem upgrade-report         say before an upgrade what becomes of executions that have not ended
  tandem bench                  measure how fast this machine runs workflows

"workflows", "import", "executions", "triggers", "inbox", "agent", "chat", "me", "users", "workspaces", "tokens", "audit", "limits",
"credentials", "contact-channels", "profiles", "budgets" and "memories" ask a server with --server (TANDEM_SERVER) and --token (TANDEM_TOKEN);
without one they open the data directory (--data, TANDEM_DATA) themselves.

"tandem new" lists workflows to begin with; the directory "examples" has smaller ones that run as they are.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("tandem {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newValidate(), newGraph(), newRun(), newServe(), newWorker(), newBench(), newWorkflows(), newImport(), newNew(),
		newExecutions(), newInbox(), newApprove(), newReject(), newAgent(), newChat(), newMe(), newUsers(), newWorkspaces(),
		newTokens(), newAudit(), newAdmin(), newExportExecution(), newFreeze(), newTest(), newCredentials(), newContactChannels(),
		newProfiles(), newBudgets(), newMemories(), newTriggers(), newMCP(), newNodes(), newSandbox(), newDoctor(),
		newRecover(), newBackup(), newRestore(), newMigrate(), newUpgradeReport(), newLimits())
	return root
}
