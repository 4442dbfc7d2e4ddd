package sqlite

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mark is how far a database has come (docs/decisions/0010). The database has one, which every transaction moves on, and
// the file tandem.mark beside it has one, written after a commit is on disk and before anybody is told of it. So the file
// is never ahead of the database: a database that is behind it lacks something that was acknowledged.
type mark struct {
	// epoch is that of the process that wrote it, and id the random name of the epoch.
	epoch int64
	id    string
	// commits counts all transactions of the database, rows and executions all that it has of them.
	commits, rows, executions int64
	// time is that of the last commit, in Unix milliseconds.
	time int64
	// folded is the last commit of which it is known that the database file has it without the log. Only the file says so.
	folded int64
}

// markFile is the name of the mark beside the database.
const markFile = "tandem.mark"

// The file has two places, each in a sector of its own, and commits write them in turn: one is always whole.
const markSize = 512

const markFormat = "tandem mark 1: epoch %d %s commit %d rows %d executions %d time %d folded %d"

// text is one place of the file, in the format above, which people can read. It is made with every commit.
func (m mark) text() []byte {
	b := append(make([]byte, 0, markSize), "tandem mark 1: epoch "...)
	b = append(strconv.AppendInt(b, m.epoch, 10), ' ')
	b = append(append(b, m.id...), " commit "...)
	b = append(strconv.AppendInt(b, m.commits, 10), " rows "...)
	b = append(strconv.AppendInt(b, m.rows, 10), " executions "...)
	b = append(strconv.AppendInt(b, m.executions, 10), " time "...)
	b = append(strconv.AppendInt(b, m.time, 10), " folded "...)
	b = strconv.AppendInt(b, m.folded, 10)
	sum := crc32.ChecksumIEEE(b)
	b = strconv.AppendUint(append(b, " check "...), uint64(sum), 16)
	b = append(b, spaces[:markSize-1-len(b)]...)
	return append(b, '\n')
}

var spaces = strings.Repeat(" ", markSize) // read-only

func parseMark(text []byte) (m mark, ok bool) {
	line, rest, found := bytes.Cut(text, []byte(" check "))
	if !found {
		return m, false
	}
	var sum uint32
	if _, err := fmt.Sscanf(string(rest), "%x", &sum); err != nil || sum != crc32.ChecksumIEEE(line) {
		return m, false
	}
	_, err := fmt.Sscanf(string(line), markFormat, &m.epoch, &m.id, &m.commits, &m.rows, &m.executions, &m.time, &m.folded)
	return m, err == nil
}

// after says that a mark is the later of two.
func (m mark) after(o mark) bool {
	return m.epoch > o.epoch || m.epoch == o.epoch && (m.commits > o.commits || m.commits == o.commits && m.folded > o.folded)
}

var errMarkDamaged = errors.New("the file " + markFile + " is damaged")

// readMark reads the mark beside a database; there is none in a new directory, in one of an older version, and in one that
// was put together from a copy.
func readMark(dir string) (m mark, there bool, err error) {
	f, err := os.Open(filepath.Join(dir, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*markSize))
	if err = errors.Join(err, f.Close()); err != nil {
		return m, false, err
	}
	written := len(bytes.Trim(text, "\x00")) > 0
	for len(text) > 0 {
		place := text[:min(markSize, len(text))]
		if one, ok := parseMark(place); ok && (!there || one.after(m)) {
			m, there = one, true
		}
		text = text[len(place):]
	}
	if written && !there {
		return m, false, errMarkDamaged
	}
	return m, there, nil
}

// openMark opens the file for writing.
func openMark(dir string) (*os.File, error) {
	return openPrivate(filepath.Join(dir, markFile))
}

// write puts a mark into the place of its turn. It does not wait for the disk: what the system has been given survives the
// process, and after a loss of power a mark that is behind claims less, never too much.
func (m mark) write(f *os.File) error {
	_, err := f.WriteAt(m.text(), m.commits%2*markSize)
	return err
}

func newEpochID() string { return rand.Text() }
