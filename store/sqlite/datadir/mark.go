package datadir

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
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

// Mark is how far a database has come (docs/decisions/0010). The file tandem.mark beside the database has one, written after a
// commit is on disk and before anybody is told of it. So the file is never ahead of the database: a database that lacks what
// the file names lacks something that was acknowledged. The database has one as well, in commit_mark, which is brought up to
// date by commits without a row of a journal, and by one in countEvery of the others.
type Mark struct {
	// Epoch is that of the process that wrote it, and id the random name of the epoch.
	Epoch int64
	id    string
	// Commits counts all transactions of the database, rows and executions all that it has of them.
	Commits, Rows, Executions int64
	// Time is that of the last commit, in Unix milliseconds.
	Time int64
	// Folded is the last commit of which it is known that the database file has it without the log. Only the file says so.
	Folded int64
	// Witness is a row of the last commit: a database that has it has the commit, and so all before it. Only the file says
	// so. It is zero for a commit that can be told by the count in the database alone.
	Witness Witness
	// Begun says that the commit was about to happen: nobody has been told of it.
	Begun bool
}

// Witness is a row of a journal: its place, and a checksum of what it holds.
type Witness struct {
	place int64
	sum   uint32
}

// WitnessOf is the witness that a row is.
func WitnessOf(place, time int64, body []byte) Witness {
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(time))
	return Witness{place, crc32.Update(crc32.Checksum(at[:], witnessTable), witnessTable, body)}
}

var witnessTable = crc32.MakeTable(crc32.Castagnoli) // read-only

// CountEvery is how many commits may go by until the database counts them: without the file it knows no better.
const CountEvery = 64

// markFile is the name of the mark beside the database.
const markFile = "tandem.mark"

// MarkSize is the size of one place of the file. It has two places, each in a sector of its own, and commits write them in turn: one is
// always whole. A place is written twice for a commit with a witness, before and after it is on disk.
const MarkSize = 512

const (
	markFormat1 = "tandem mark 1: epoch %d %s commit %d rows %d executions %d time %d folded %d"
	markFormat2 = "tandem mark 2: epoch %d %s commit %d rows %d executions %d time %d folded %d row %d sum %d begun %t"
)

// text is one place of the file, in the second format above, which people can read. It is made with every commit, in a
// buffer that is used again.
func (m Mark) text(buffer []byte) []byte {
	b := append(buffer[:0], "tandem mark 2: epoch "...)
	b = append(strconv.AppendInt(b, m.Epoch, 10), ' ')
	b = append(append(b, m.id...), " commit "...)
	b = append(strconv.AppendInt(b, m.Commits, 10), " rows "...)
	b = append(strconv.AppendInt(b, m.Rows, 10), " executions "...)
	b = append(strconv.AppendInt(b, m.Executions, 10), " time "...)
	b = append(strconv.AppendInt(b, m.Time, 10), " folded "...)
	b = append(strconv.AppendInt(b, m.Folded, 10), " row "...)
	b = append(strconv.AppendInt(b, m.Witness.place, 10), " sum "...)
	b = append(strconv.AppendUint(b, uint64(m.Witness.sum), 10), " begun "...)
	b = strconv.AppendBool(b, m.Begun)
	sum := crc32.ChecksumIEEE(b)
	b = strconv.AppendUint(append(b, " check "...), uint64(sum), 16)
	b = append(b, spaces[:MarkSize-1-len(b)]...)
	return append(b, '\n')
}

var spaces = strings.Repeat(" ", MarkSize) // read-only

func parseMark(text []byte) (m Mark, ok bool) {
	line, rest, found := bytes.Cut(text, []byte(" check "))
	if !found {
		return m, false
	}
	var sum uint32
	if _, err := fmt.Sscanf(string(rest), "%x", &sum); err != nil || sum != crc32.ChecksumIEEE(line) {
		return m, false
	}
	if bytes.HasPrefix(line, []byte("tandem mark 1:")) { // of an earlier version, which counted every commit in the database
		_, err := fmt.Sscanf(string(line), markFormat1, &m.Epoch, &m.id, &m.Commits, &m.Rows, &m.Executions, &m.Time, &m.Folded)
		return m, err == nil
	}
	_, err := fmt.Sscanf(string(line), markFormat2, &m.Epoch, &m.id, &m.Commits, &m.Rows, &m.Executions, &m.Time, &m.Folded,
		&m.Witness.place, &m.Witness.sum, &m.Begun)
	return m, err == nil
}

// after says that a mark is the later of two.
func (m Mark) after(o Mark) bool {
	return m.Epoch > o.Epoch || m.Epoch == o.Epoch && (m.Commits > o.Commits || m.Commits == o.Commits && m.Folded > o.Folded)
}

// claim is what the file says.
type claim struct {
	// mark is the last commit that was acknowledged.
	Mark
	// there says that the file says anything: it does not in a new directory, in one of an older version, and in one that was
	// put together from a copy.
	there bool
	// next is the commit that was about to happen after it, if one was.
	next Mark
}

var errMarkDamaged = errors.New("the file " + markFile + " is damaged")

// ReadMark reads the mark beside a database.
func ReadMark(dir string) (c claim, err error) {
	f, err := os.Open(filepath.Join(dir, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*MarkSize))
	if err = errors.Join(err, f.Close()); err != nil {
		return c, err
	}
	for len(text) > 0 {
		place := text[:min(MarkSize, len(text))]
		text = text[len(place):]
		one, ok := parseMark(place)
		switch {
		case !ok:
		case one.Begun:
			c.next = one
		case !c.there || one.after(c.Mark):
			c.Mark, c.there = one, true
		}
	}
	if !c.there { // it is made with a mark in it
		return c, errMarkDamaged
	}
	if c.next.Epoch != c.Epoch || c.next.Commits != c.Commits+1 {
		c.next = Mark{} // a commit that was tried before
	}
	return c, nil
}

// OpenMark opens the file for writing. One that is not there is made with a mark in it, which is on disk before the file has its name: an
// empty one has lost what was in it.
func OpenMark(dir string, m Mark) (*os.File, error) {
	path := filepath.Join(dir, markFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return nil, err
		}
		return openPrivate(path)
	}
	f, err := openPrivate(path + ".new")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(0), m.Write(f, nil), f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return openPrivate(path)
}

// Write puts a mark into the place of its turn. It does not wait for the disk: what the system has been given survives the
// process, and after a loss of power a mark that is behind claims less, never too much.
func (m Mark) Write(f *os.File, buffer []byte) error {
	_, err := f.WriteAt(m.text(buffer), m.Commits%2*MarkSize)
	return err
}

func newEpochID() string { return rand.Text() }
