package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tandem/builtin/code"
	"tandem/console"
	"tandem/outbound"
)

// addData adds the flag for the data directory. The help says what the command does with it.
func addData(flags *pflag.FlagSet, dir *string, help string) {
	flags.StringVar(dir, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), help)
}

// nodeFlags are those of commands that run nodes in their own process: run, serve and worker.
type nodeFlags struct {
	allow    string
	debug    bool
	scripts  scriptFlags
	grace    graceFlag
	database databaseFlag
}

// addNodeFlags adds the flags. The help of --grace says when what runs has to end.
func (f *nodeFlags) addNodeFlags(cmd *cobra.Command, grace string) {
	flags := cmd.Flags()
	f.database.addDatabaseFlag(flags, "")
	flags.StringVar(&f.allow, "http-allow", os.Getenv("TANDEM_HTTP_ALLOW"), "private addresses and hosts that nodes may reach, separated by commas (TANDEM_HTTP_ALLOW)")
	f.scripts.addScriptFlags(cmd)
	f.grace.addGraceFlag(cmd, grace)
	flags.BoolVar(&f.debug, "debug", false, debugHelp)
}

// nodeOptions is what the flags of a command say that runs nodes.
type nodeOptions struct {
	allow   outbound.AllowList
	scripts *code.Scripts
	grace   time.Duration
}

// nodeOptions returns what the flags say, or why they cannot be meant.
func (f *nodeFlags) nodeOptions(cmd *cobra.Command) (o nodeOptions, err error) {
	if o.allow, err = outbound.ParseAllow(f.allow); err != nil {
		return o, console.Usage(errors.New(sayError(err)))
	}
	if o.scripts, err = f.scripts.readScripts(); err != nil {
		return o, err
	}
	o.grace, err = f.grace.gracePeriod(cmd)
	return o, err
}

// log is where a process logs that runs until it is told to stop.
func (f *nodeFlags) log(cmd *cobra.Command) *slog.Logger {
	level := slog.LevelInfo
	if f.debug {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// traces is where spans are sent to; empty: nowhere.
func traces() string {
	return cmp.Or(os.Getenv("TANDEM_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

// untilStopped runs a process that goes on until it is told to stop. Run writes the address of the process when it is reached there,
// and keeps what was wrong with the writing in written.
func untilStopped(cmd *cobra.Command, run func(ctx context.Context, written *error) error) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	var written error
	if err := run(ctx, &written); err != nil {
		return failed(cmd, err)
	}
	if written != nil {
		return console.Problem(fmt.Errorf("write the address: %w", written))
	}
	return nil
}
