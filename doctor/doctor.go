// Package doctor finds out what keeps Tandem from working on a machine: the data directory, its lock, its database, the key that seals
// credentials, the address of a server. It changes nothing. The command imports it, and package console, which shows what it finds.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/sandbox"
	"tandem/store/postgres"
	"tandem/store/sqlite/datadir"
)

// Doctor says what is to be looked at.
type Doctor struct {
	// Dir is the data directory, Database the address of the database if that is not in it, Addr where a server listens or would.
	Dir      string
	Database string
	Addr     string
	// MasterKey says that the key is given by the environment and not by the data directory.
	MasterKey string
	Version   string
	// Temporal says why the Temporal server that executions run on cannot be used; nil: they run in the server. TemporalAddress is its
	// address.
	Temporal        func(ctx context.Context) error
	TemporalAddress string
	// Listen listens on an address as a server would.
	Listen func(ctx context.Context, addr string) (net.Listener, error)
}

// Health is how one thing stands.
type Health string

// How a thing can stand. A failure keeps Tandem from working, a warning may come to.
const (
	Healthy Health = "ok"
	Warning Health = "warn"
	Failing Health = "fail"
)

// Finding is what was found out about one thing, and what to do about it.
type Finding struct {
	Name    string `json:"name"`
	Status  Health `json:"status"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Diagnosis is all of it.
type Diagnosis struct {
	// OK says that nothing fails.
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
}

// Examine looks at an installation without changing it.
func (d Doctor) Examine(ctx context.Context) Diagnosis {
	out := Diagnosis{OK: true}
	add := func(list ...Finding) {
		for _, f := range list {
			out.OK = out.OK && f.Status != Failing
			out.Findings = append(out.Findings, f)
		}
	}
	add(Finding{"version", Healthy, fmt.Sprintf("tandem %s, %s, %s/%s", d.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH), ""})
	there, finding := d.directory()
	add(finding)
	switch {
	case d.Database != "":
		add(d.server(ctx)...)
	case there:
		add(d.data(ctx)...)
	}
	if d.Temporal != nil {
		add(d.temporal(ctx))
	}
	add(d.address(ctx))
	add(walls(ctx))
	return out
}

// Ready asks the server alone whether it takes requests, which is quick; it looks at nothing else.
func (d Doctor) Ready(ctx context.Context) Diagnosis {
	const name = "server"
	version, ready, err := askServer(ctx, d.Addr)
	found := Finding{name, Healthy, fmt.Sprintf("tandem %s on %s is ready", version, d.Addr), ""}
	switch {
	case err != nil:
		found = Finding{name, Failing, fmt.Sprintf("no server answers on %s: %s", d.Addr, plain(err)), "start it, or name its address with --addr (TANDEM_ADDR)"}
	case !ready:
		found = Finding{name, Failing, fmt.Sprintf("tandem %s on %s is not ready", version, d.Addr), "wait until it has started; if it drains, start it again; else read its log"}
	}
	return Diagnosis{OK: found.Status == Healthy, Findings: []Finding{found}}
}

// walls says what stands between code of workflows and the machine.
func walls(ctx context.Context) Finding {
	const name = "sandbox"
	list, err := sandbox.Walls(ctx)
	if err != nil {
		return Finding{name, Warning, "it could not be tried: " + plain(err), "code in workflows may not run here"}
	}
	var up, missing []string
	for _, w := range list {
		if w.Up {
			up = append(up, w.Name)
		} else {
			missing = append(missing, w.Name+" ("+w.How+")")
		}
	}
	if len(missing) > 0 {
		return Finding{name, Warning, "code of workflows is behind an interpreter, and these walls are missing: " + strings.Join(missing, ", "), "run code only of people you trust, or use a newer Linux kernel"}
	}
	return Finding{name, Healthy, "code of workflows is kept from " + strings.Join(up, ", "), ""}
}

// directory says whether the data directory can be used.
func (d Doctor) directory() (there bool, _ Finding) {
	const name = "data directory"
	info, err := os.Stat(d.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, Finding{name, Warning, fmt.Sprintf("%q does not exist yet", d.Dir), "nothing is to be done: the first run or server makes it; if there should be data, name its place with --data"}
	case err != nil:
		return false, Finding{name, Failing, plain(err), "let this user read it, or name another with --data"}
	case !info.IsDir():
		return false, Finding{name, Failing, fmt.Sprintf("%q is a file", d.Dir), "name a directory with --data"}
	}
	probe, err := os.CreateTemp(d.Dir, ".doctor-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return true, Finding{name, Failing, fmt.Sprintf("%q cannot be written: %s", d.Dir, plain(err)), "let this user write there, or name another directory with --data"}
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && runtime.GOOS != "windows" {
		return true, Finding{name, Warning, fmt.Sprintf("%q has the mode %04o: other users of this machine can put files into it and take files away, the key that seals credentials too", d.Dir, mode),
			fmt.Sprintf("chmod 700 %q", d.Dir)}
	}
	return true, Finding{name, Healthy, fmt.Sprintf("%q exists and can be written", d.Dir), ""}
}

// Below these amounts of free space there is something to say. The lower one is where the store refuses new executions.
const (
	littleSpace = 1 << 30
	noSpaceLeft = 32 << 20
)

// data says what is in the data directory.
func (d Doctor) data(ctx context.Context) []Finding {
	i, err := datadir.Inspect(ctx, d.Dir)
	if err != nil {
		return []Finding{{"database", Failing, "it cannot be read: " + plain(err), "make sure that it is a database of Tandem that this user may read; restore a backup if it is damaged"}}
	}
	space := Finding{"free space", Healthy, fmt.Sprintf("%d MiB", i.Free>>20), ""}
	switch {
	case i.Free < noSpaceLeft:
		space.Status, space.Remedy = Failing, "make room: new executions are refused"
	case i.Free < littleSpace:
		space.Status, space.Remedy = Warning, "make room before it runs out"
	}
	size, err := datadir.Measure(d.Dir)
	if err != nil {
		return []Finding{{"size", Failing, "it cannot be measured: " + plain(err), "let this user read the data directory"}}
	}
	sizes := Finding{"size", Healthy, fmt.Sprintf("database %d MiB, its log %d MiB, files and large values %d MiB", size.Database>>20, size.Log>>20, size.Blobs>>20), ""}
	if size.Copies > 0 {
		sizes.Message += fmt.Sprintf(", copies from before upgrades %d MiB: they still hold what was deleted since; remove %s.version-* once the upgrade has proved itself", size.Copies>>20, datadir.DatabaseFile)
	}
	lock := Finding{"lock", Healthy, "no process has the directory open", ""}
	if i.InUse {
		lock.Message = "a process has the directory open: commands reach it with --server"
		if pid := owner(d.Dir); pid != "" {
			lock.Message = fmt.Sprintf("process %s has the directory open: commands reach it with --server", pid)
		}
	}
	list := []Finding{space, sizes, lock}
	if len(i.Accepted) > 0 {
		list = append(list, Finding{"accepted losses", Healthy, fmt.Sprintf("%d; the last was %s", len(i.Accepted), i.Accepted[len(i.Accepted)-1]), ""})
	}
	switch {
	case i.Lost != "":
		list = append(list, Finding{"database", Failing, i.Lost, i.Remedy})
	case i.Version == 0:
		list = append(list, Finding{"database", Healthy, "there is none yet; the first run or server makes it", ""})
	case i.Version > i.Known:
		list = append(list, newer(i.Version, i.Known))
	case len(i.Problems) > 0:
		list = append(list, Finding{"database", Failing, "it is damaged: " + strings.Join(i.Problems[:min(3, len(i.Problems))], "; "), "restore a backup"})
	case i.Version < i.Known:
		list = append(list, Finding{"database", Healthy, fmt.Sprintf("it is sound; the next start brings it from version %d to %d", i.Version, i.Known), ""})
	default:
		list = append(list, Finding{"database", Healthy, fmt.Sprintf("it is sound and has version %d", i.Version), ""})
	}
	return append(list, d.masterKey(i.Credentials))
}

// server says how the database of a server stands.
func (d Doctor) server(ctx context.Context) []Finding {
	i, err := postgres.Inspect(ctx, d.Database)
	if err != nil {
		return []Finding{{"database", Failing, plain(err), "correct --database (TANDEM_DATABASE), or what the message names"}}
	}
	list := []Finding{
		{"database server", Healthy, fmt.Sprintf("%s, PostgreSQL %s", i.Where, i.Server), ""},
		{"size", Healthy, fmt.Sprintf("database %d MiB", i.Size>>20), ""},
		{"lock", Healthy, "no process has the database open", ""},
	}
	if i.InUse {
		list[2].Message = "a process has the database open: commands reach it with --server"
	}
	if i.Public {
		list = append(list, Finding{"who may connect", Warning, "every role of the database's server: it can see when something is recorded, and stop all work by filling the server's queue of messages (NOTIFY); what the messages say is sealed",
			"REVOKE CONNECT ON DATABASE … FROM PUBLIC, after GRANT CONNECT ON DATABASE … TO the user of Tandem unless it owns the database; or let no other role use the server"})
	} else {
		list = append(list, Finding{"who may connect", Healthy, "only roles that were given the right", ""})
	}
	switch {
	case i.Version == 0:
		list = append(list, Finding{"database", Healthy, "there is nothing in it yet; the first run or server makes its tables", ""})
	case i.Version > i.Known:
		list = append(list, newer(i.Version, i.Known))
	case i.Version < i.Known:
		list = append(list, Finding{"database", Healthy, fmt.Sprintf("the next start brings it from version %d to %d", i.Version, i.Known),
			""})
	default:
		list = append(list, Finding{"database", Healthy, fmt.Sprintf("it has version %d", i.Version), ""})
	}
	return append(list, d.masterKey(i.Credentials))
}

// temporal says whether executions can run on Temporal.
func (d Doctor) temporal(ctx context.Context) Finding {
	if err := d.Temporal(ctx); err != nil {
		return Finding{"Temporal", Failing, plain(err), "do what the message says; executions do not run until then"}
	}
	return Finding{"Temporal", Healthy, d.TemporalAddress + " answers", ""}
}

// newer is what is found of a database that a newer program has written.
func newer(version, known int64) Finding {
	return Finding{"database", Failing, fmt.Sprintf("it has version %d and this program knows versions up to %d", version, known), "run the newer program that wrote it, or restore a backup from before"}
}

// owner is the process that has left its number in the lock.
func owner(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "tandem.lock"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// masterKey says whether stored credentials can be opened.
func (d Doctor) masterKey(credentials int64) Finding {
	const name = "master key"
	if d.MasterKey != "" {
		if _, err := credential.ParseKeyring(d.MasterKey); err != nil {
			return Finding{name, Failing, "that of TANDEM_MASTER_KEY cannot be read: " + plain(err), "set it as it was, or take it away to use the one in the data directory"}
		}
		return Finding{name, Healthy, "it is given by TANDEM_MASTER_KEY", ""}
	}
	dir, err := os.OpenRoot(d.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fault.New(fault.NotFound, "there is no data directory")
	case err != nil:
		return Finding{name, Failing, plain(err), "let this user read the data directory"}
	default:
		_, err = credential.OpenKeyFile(dir)
		err = errors.Join(err, dir.Close())
	}
	switch {
	case err == nil:
		return Finding{name, Healthy, fmt.Sprintf("%s is there; back it up apart from the database", credential.KeyFile), ""}
	case fault.CodeOf(err) == fault.NotFound && credentials == 0:
		return Finding{name, Healthy, "there is none yet, and nothing that it has sealed", ""}
	case fault.CodeOf(err) == fault.NotFound:
		return Finding{name, Failing, fmt.Sprintf("%s is missing and has sealed %d credentials", credential.KeyFile, credentials), "put the file back from a backup, set TANDEM_MASTER_KEY, or delete the credentials and enter them again"}
	}
	return Finding{name, Failing, plain(err), "put the file back as it was"}
}

// address says whether a server could listen, or what answers there.
func (d Doctor) address(ctx context.Context) Finding {
	const name = "address"
	listener, err := d.Listen(ctx, d.Addr)
	switch {
	case err == nil:
		if err := listener.Close(); err != nil {
			return Finding{name, Warning, plain(err), ""}
		}
		return Finding{name, Healthy, fmt.Sprintf("%s is free for a server", d.Addr), ""}
	case !errors.Is(err, syscall.EADDRINUSE):
		return Finding{name, Failing, plain(err), "choose another with --addr (TANDEM_ADDR)"}
	}
	version, ready, err := askServer(ctx, d.Addr)
	switch {
	case err != nil:
		return Finding{name, Warning, fmt.Sprintf("something else than Tandem listens on %s: %s", d.Addr, plain(err)), "stop it, or choose another address with --addr (TANDEM_ADDR)"}
	case !ready:
		return Finding{name, Failing, fmt.Sprintf("the server on %s, tandem %s, is not ready", d.Addr, version),
			"read its log; start it again when its disk works"}
	}
	return Finding{name, Healthy, fmt.Sprintf("a server answers on %s: tandem %s", d.Addr, version), ""}
}

// askServer asks what listens on an address whether it is one of ours.
func askServer(ctx context.Context, addr string) (version string, ready bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", false, err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	base := "http://" + net.JoinHostPort(host, port)
	var told struct{ Status, Version string }
	if err := getJSON(ctx, c, base+"/healthz", &told); err != nil {
		return "", false, err
	}
	if told.Status != "alive" || told.Version == "" {
		return "", false, errors.New("its answer to /healthz is not an answer of Tandem")
	}
	version = told.Version
	return version, getJSON(ctx, c, base+"/readyz", &told) == nil, nil
}

func getJSON(ctx context.Context, c *http.Client, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := c.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return json.NewDecoder(io.LimitReader(response.Body, 1<<10)).Decode(into)
}

// plain is an error for people: a fault without its code, a file error without the call that failed.
func plain(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Message
	}
	return err.Error()
}
