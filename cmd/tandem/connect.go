package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/client"
	"tandem/console"
	"tandem/console/table"
	"tandem/fault"
	"tandem/outbound"
	"tandem/text"
)

// connectFlags say where the API is. Every command that works on executions or workflows has them.
type connectFlags struct {
	server, token, dir string
	database           databaseFlag
	// allow is what may be reached besides public addresses, for commands that reach something themselves: see addAllow.
	allow string
	// grace is for commands that run something themselves: see addGrace.
	grace graceFlag
	// debug writes what becomes of data to the standard error, for the same commands: see addDebug.
	debug bool
}

func (f *connectFlags) addConnectFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.server, "server", os.Getenv("TANDEM_SERVER"), "the address of a server, such as http://127.0.0.1:8080 (TANDEM_SERVER)")
	flags.StringVar(&f.token, "token", "", "a token of that server (TANDEM_TOKEN)")
	addData(flags, &f.dir, "without a server: the data directory (TANDEM_DATA)")
	f.database.addDatabaseFlag(flags, "without a server: ")
}

// addData adds the flag for the data directory alone, to a command that is for who has the machine.
func (f *connectFlags) addData(cmd *cobra.Command) {
	addData(cmd.Flags(), &f.dir, "the data directory (TANDEM_DATA)")
	f.database.addDatabaseFlag(cmd.Flags(), "")
}

// addAllow adds the flag for what this program may reach, to a command that reaches something when there is no server to do it.
func (f *connectFlags) addAllow(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.allow, "http-allow", "", "without a server: private addresses and hosts that may be reached, separated by commas (TANDEM_HTTP_ALLOW)")
}

// addGrace adds the flag for how long what runs may take to end, to a command that runs something when there is no server to do it.
func (f *connectFlags) addGrace(cmd *cobra.Command) {
	f.grace.addGraceFlag(cmd, "without a server: how long what runs may take to end when you interrupt it; 0 for no time (TANDEM_GRACE)")
}

// again is the flags that a command which is suggested needs to reach the same place; empty: none. A token or a password is not repeated.
func (f *connectFlags) again(cmd *cobra.Command) string {
	text := ""
	for _, flag := range []struct{ name, value string }{{"server", f.server}, {"data", f.dir}, {"database", strings.TrimPrefix(f.database.again(), " --database ")}} {
		if given := cmd.Flags().Lookup(flag.name); given != nil && given.Changed && flag.value != "" {
			text += " --" + flag.name + " " + flag.value
		}
	}
	return text
}

// debugHelp says what --debug does.
const debugHelp = "log more, to the standard error: also what becomes of placeholders and outputs, which is then in the log of the execution, too"

// addDebug adds the flag for more logging, to a command that runs something when there is no server to do it.
func (f *connectFlags) addDebug(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.debug, "debug", false, "without a server: "+debugHelp)
}

// debugLog is where a command logs with --debug; nil without it.
func debugLog(cmd *cobra.Command, debug bool) *slog.Logger {
	if !debug {
		return nil
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// graceFlag is how long what runs may take to end.
type graceFlag struct{ given time.Duration }

func (g *graceFlag) addGraceFlag(cmd *cobra.Command, about string) {
	cmd.Flags().DurationVar(&g.given, "grace", app.DefaultGrace, about)
}

// gracePeriod returns the grace as package app takes it, where zero is the default.
func (g *graceFlag) gracePeriod(cmd *cobra.Command) (time.Duration, error) {
	grace := app.DefaultGrace
	switch flag, text := cmd.Flags().Lookup("grace"), os.Getenv("TANDEM_GRACE"); {
	case flag != nil && flag.Changed:
		grace = g.given
	case text != "":
		var err error
		if grace, err = time.ParseDuration(text); err != nil {
			return 0, console.Usage(fmt.Errorf("TANDEM_GRACE %q is not a duration; write it as 30s or 2m", text))
		}
	}
	if grace < 0 {
		return 0, console.Usage(fmt.Errorf("--grace %s is negative; 0 gives what runs no time", grace))
	}
	if grace == 0 {
		return -1, nil
	}
	return grace, nil
}

// drains tells the person who has interrupted a command, or waits for its end, why it is still there.
func drains(cmd *cobra.Command) func(time.Duration) {
	return func(grace time.Duration) {
		fmt.Fprintf(cmd.ErrOrStderr(), "nothing new begins; what runs gets up to %s to end. Press Ctrl-C again to stop at once\n", grace)
	}
}

// with opens the API for a command, here or at a server, and closes it afterwards. Make makes a data directory that is not
// there. Executions of a data directory rest: what is changed of them is recorded.
func (f *connectFlags) with(cmd *cobra.Command, make bool, do func(ctx context.Context, c *app.Connection) error) error {
	return f.open(cmd, app.Connect{Make: make}, do)
}

// driving is with for a command that lets executions of its own go on.
func (f *connectFlags) driving(cmd *cobra.Command, make bool, do func(ctx context.Context, c *app.Connection) error) error {
	return f.open(cmd, app.Connect{Make: make, Drives: true}, do)
}

func (f *connectFlags) open(cmd *cobra.Command, at app.Connect, do func(ctx context.Context, c *app.Connection) error) error {
	given, from := os.Getenv("TANDEM_HTTP_ALLOW"), "TANDEM_HTTP_ALLOW"
	if f.allow != "" {
		given, from = f.allow, "--http-allow"
	}
	allow, err := outbound.ParseAllow(given)
	if err != nil {
		return console.Usage(fmt.Errorf("%s: %s", from, sayError(err)))
	}
	if at.Drives {
		if at.Grace, err = f.grace.gracePeriod(cmd); err != nil {
			return err
		}
		at.Draining = drains(cmd)
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	// The token is not the default of its flag, which help would print.
	at.Server, at.Token, at.Dir, at.Version = f.server, cmp.Or(f.token, os.Getenv("TANDEM_TOKEN")), f.dir, version
	at.Options = app.Options{Database: f.database.address(), MasterKey: os.Getenv("TANDEM_MASTER_KEY"), HTTPAllow: allow,
		Language: console.InstalledLanguage(), Log: debugLog(cmd, f.debug)}
	c, err := app.NewConnection(ctx, at)
	if err == nil {
		c.Client = c.In(console.UserLanguage())
		switch {
		case f.allow != "" && !c.Local():
			err = fault.New(fault.Conflict, "a server does this, with the --http-allow that it was started with; leave the flag out")
		case f.debug && !c.Local():
			err = fault.New(fault.Conflict, "a server does this, and logs what it was started to log (tandem serve --debug); leave --debug out")
		default:
			err = do(ctx, c)
		}
		if cerr := c.Close(); err == nil && cerr != nil {
			err = cerr
		}
	}
	return failed(cmd, err)
}

// failed tells an error of the work from one of usage, in the words of the command, and adds what to do about it where the flags
// can help.
func failed(cmd *cobra.Command, err error) error {
	if err == nil || errors.Is(err, console.ErrReported) || errors.Is(err, console.ErrParked) || errors.As(err, new(console.UsageError)) {
		return err
	}
	say := func(words, code string) error {
		words = inCommands(cmd, words)
		if code != "" {
			words += " [" + code + "]"
		}
		return console.Problem(toldError{words, err})
	}
	if fault.CodeOf(err) == fault.Unauthorized {
		return say(text.Of("%s; give a token with --token (TANDEM_TOKEN)", err).In(console.UserLanguage()), string(fault.Unauthorized))
	}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return say(err.Error(), refused.Code)
	}
	if f, ok := err.(*fault.Error); ok { // not wrapped: its own text has the code in front
		return say(sayError(f), string(f.Code))
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && !strings.Contains(err.Error(), string(f.Code)+": ") {
		if err.Error() == f.Message { // of the connection, say
			return say(sayError(f), string(f.Code))
		}
		return say(err.Error(), string(f.Code))
	}
	return say(err.Error(), "")
}

// sayError is what an error says to who sits at the terminal.
func sayError(err error) string { return text.ErrorIn(console.UserLanguage(), fault.From(err)) }

// toldError is an error in the words of a command.
type toldError struct {
	text string
	error
}

// Error implements error.
func (e toldError) Error() string { return e.text }

// Unwrap returns what it is about.
func (e toldError) Unwrap() error { return e.error }

// interruptible returns a context that ends with the first interrupt; the second one ends the process at once.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // signals then do again what they do by default
	return ctx, stop
}

// one takes the one argument that a command is about.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("%s needs one %s; %d were named", cmd.CommandPath()[len("tandem "):], what, len(args))
		}
		return nil
	}
}

// listing is how lists and single things are shown.
type listing struct{ table.Listing }

func (l *listing) addListingFlags(cmd *cobra.Command, wide bool) {
	cmd.Flags().BoolVar(&l.JSON, "json", false, "print what the API answers, as JSON")
	if wide {
		cmd.Flags().StringVarP(&l.Output, "output", "o", "", `"wide" shows more columns`)
	}
}

func (l *listing) check() error {
	if l.Output != "" && l.Output != "wide" {
		return console.Usage(fmt.Errorf("--output %q is not known; use wide, or --json", l.Output))
	}
	return nil
}

// terminal is where a command reads from and writes to, for package console.
func terminal(cmd *cobra.Command) *console.Terminal {
	return &console.Terminal{
		In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(),
		Words:  func(text string) string { return inCommands(cmd, text) },
		Failed: func(err error) error { return failed(cmd, err) },
	}
}
