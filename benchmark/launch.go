package benchmark

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"tandem/cluster"
)

// ServeLaunchedSide serves a side until the one who launched it lets go. It tells where it listens, and then, for every line that comes
// in, what it has used.
func ServeLaunchedSide(ctx context.Context, in io.Reader, out io.Writer, o SideOptions) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	told := json.NewEncoder(out)
	return ServeAPISide(ctx, o, func(s APISide) {
		if told.Encode(s) != nil {
			stop() // nobody is there
			return
		}
		go func() { // it ends with its input
			defer stop()
			for lines := bufio.NewScanner(in); lines.Scan(); {
				if told.Encode(OwnUsage()) != nil {
					return
				}
			}
		}()
	})
}

// LaunchSide starts a side in a process of its own: this program with the arguments of "bench api" that serve it. What it writes to its
// standard error goes to stderr.
func LaunchSide(ctx context.Context, stderr io.Writer, o SideOptions) (*APISide, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"bench", "api", "--side", o.Side, "--dir", o.Dir, "--executions", fmt.Sprint(o.Executions), "--signals", fmt.Sprint(o.Signals)}
	child := exec.CommandContext(ctx, self, append(args, onEngine(o.Temporal)...)...)
	child.Stderr, child.Env = stderr, withDatabase(o.Database)
	in, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(out)
	var s APISide
	s.Close = func() error {
		if err := in.Close(); err != nil {
			return err
		}
		return child.Wait()
	}
	s.Usage = func() (usage APIUsage, err error) {
		if _, err := io.WriteString(in, "\n"); err != nil {
			return usage, err
		}
		return usage, decoder.Decode(&usage)
	}
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("start the side %q: %w", o.Side, cmp.Or(s.Close(), err))
	}
	return &s, nil
}

// onEngine are the arguments of a process whose executions run where those of this one do. A key for Temporal is in the environment, which
// that process inherits, or in a file.
func onEngine(t *cluster.Options) []string {
	if t == nil {
		return []string{"--engine=local"}
	}
	s := t.Security
	return []string{
		"--engine=temporal", "--temporal-address=" + t.Address, "--temporal-namespace=" + t.Namespace, "--task-queue=" + t.TaskQueue,
		"--temporal-tls=" + strconv.FormatBool(s.TLS), "--temporal-tls-cert=" + s.Cert, "--temporal-tls-key=" + s.Key,
		"--temporal-tls-ca=" + s.CA, "--temporal-tls-server-name=" + s.ServerName, "--temporal-api-key-file=" + s.APIKeyFile,
	}
}

// withDatabase is the environment of a process that works on a database. Its address may have a password, which others could read in
// arguments.
func withDatabase(address string) []string { return append(os.Environ(), "TANDEM_DATABASE="+address) }

// MeasureScaleAll measures every phase, each in a process of its own, in directories below one that is made for it and removed at the end,
// and so are databases on a server. It calls measuring with the name of each phase before it begins.
func MeasureScaleAll(
	ctx context.Context, stderr io.Writer, data string, s Scale, measuring func(phase string),
) (reports []ScaleReport, err error) {
	phases, err := s.phases()
	if err != nil {
		return nil, err
	}
	if err := s.checkBeside(phases); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(data, "bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if rerr := os.RemoveAll(dir); err == nil {
			err = rerr
		}
	}()
	bases, err := newBases(ctx, s.Database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bases.remove(context.WithoutCancel(ctx))) }()
	if s.Temporal != nil {
		s.Temporal = onItsOwnQueue(*s.Temporal)
	}
	made := map[string]string{}
	for _, phase := range phases {
		measuring(phase)
		where := dir
		switch phase {
		case "loop", "idle":
			where = filepath.Join(dir, phase) // nothing of the others is in it
		case "ask", "due":
			where = filepath.Join(dir, "people")
		}
		if _, there := made[where]; !there {
			if made[where], err = bases.addDatabase(ctx); err != nil {
				return nil, err
			}
		}
		s.Database, s.Dir = made[where], where
		if s.Beside > 0 && phase == "wake" {
			both, err := wakeInTurns(ctx, stderr, s)
			if err != nil {
				return nil, err
			}
			both[1].Phase += besideOthers
			reports = append(reports, both[:]...)
			continue
		}
		report, err := runPhase(ctx, stderr, phase, s)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
		if s.Beside > 0 && phase == "park" {
			if report, err = runPhase(ctx, stderr, phase, s.beside()); err != nil {
				return nil, err
			}
			report.Phase += besideOthers
			reports = append(reports, report)
		}
	}
	return reports, nil
}

// besideOthers is behind the name of a phase that was measured in the second directory.
const besideOthers = " beside"

// phaseProcess is the process of a phase, which has yet to be started.
func phaseProcess(ctx context.Context, stderr io.Writer, phase string, s Scale) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{
		"bench", "scale", "--phase", phase, "--dir", s.Dir,
		"--parked", fmt.Sprint(s.Parked), "--iterations", fmt.Sprint(s.Iterations), "--turn", fmt.Sprint(s.Turn),
	}
	cmd := exec.CommandContext(ctx, self, append(args, onEngine(s.Temporal)...)...)
	cmd.Stderr, cmd.Env = stderr, withDatabase(s.Database)
	return cmd, nil
}

// runPhase measures a phase in a process of its own.
func runPhase(ctx context.Context, stderr io.Writer, phase string, s Scale) (report ScaleReport, err error) {
	s.Turn = 0
	cmd, err := phaseProcess(ctx, stderr, phase, s)
	if err != nil {
		return report, err
	}
	out, err := cmd.Output()
	if err != nil {
		return report, fmt.Errorf("phase %q: %w", phase, err)
	}
	return report, json.Unmarshal(out, &report)
}
