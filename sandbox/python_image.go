package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// An image is CPython after it has started and imported its library: the bytes of its linear memory, the stack pointer
// and the address of the function that answers calls. Linear memory holds no address of this process, so an image made
// by one child serves every other, and is kept in the cache directory beside the compiled module.
//
// A file is the memory followed by a trailer: magic, stack pointer, function, table index, length of the memory.
type pythonImage struct {
	stack    uint32 // the stack pointer at which calls begin
	function uint32 // the Python function that answers one call
	entry    uint32 // where the table has the C function that calls a Python function
	length   int
}

const (
	imageMagic   = 0x54414e44454d3031
	imageTrailer = 8 + 4*4
	// vectorcallOffset is where a function object of CPython 3.12 on a 32-bit machine keeps its vectorcall pointer.
	vectorcallOffset = 64
)

// errReady is thrown through the interpreter by the host function that it calls when it is ready to be copied.
var errReady = errors.New("the interpreter is ready") // read-only

// The cache directory has one directory for each version of the interpreter, with the compiled module and the image. A
// child marks the one it uses, by its time. Whoever adds a version removes those that nobody has used for cacheAge.
const (
	cachePrefix = "python-"
	imageName   = "image"
	cacheAge    = 14 * 24 * time.Hour
)

// cacheHome returns the directory for this version, named by everything that goes into what is kept there, and marks it
// as used. Where nothing is kept it is empty.
func cacheHome(dir string, module []byte) (string, error) {
	if dir == "" {
		return "", nil
	}
	h := sha256.New()
	h.Write(module)
	io.WriteString(h, pythonBootstrap)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				io.WriteString(h, d.Version)
			}
		}
	}
	home := filepath.Join(dir, cachePrefix+runtime.GOARCH+"-"+hex.EncodeToString(h.Sum(nil)[:16]))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", fmt.Errorf("make the cache of compiled modules: %w", err)
	}
	now := time.Now()
	// Where it cannot be marked, nobody can remove it either.
	_ = os.Chtimes(home, now, now)
	return home, nil
}

// sweepCache removes versions other than the one in home that nobody has used since before. Children that run have all
// they need open and in memory. A child that starts at this moment marks its version first: a directory is moved out of
// the way, looked at once more, and put back if it was marked meanwhile.
func sweepCache(home string, before time.Time) error {
	dir := filepath.Dir(home)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	unused := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.ModTime().Before(before)
	}
	var failed []error
	for _, e := range entries {
		path, aside := filepath.Join(dir, e.Name()), filepath.Join(dir, cachePrefix+"old-"+e.Name())
		if !strings.HasPrefix(e.Name(), cachePrefix) || path == home || !unused(path) {
			continue
		}
		if err := os.Rename(path, aside); errors.Is(err, os.ErrNotExist) {
			continue // another process removes it
		} else if err != nil {
			failed = append(failed, err)
			continue
		}
		if !unused(aside) {
			failed = append(failed, os.Rename(aside, path))
			continue
		}
		failed = append(failed, os.RemoveAll(aside))
	}
	return errors.Join(failed...)
}

// loadImage maps a kept image, or makes one and keeps it in home, which may be empty.
func (p *python) loadImage(ctx context.Context, home string) error {
	if home != "" {
		file, err := os.Open(filepath.Join(home, imageName))
		if err == nil {
			if image, err := readTrailer(file); err == nil {
				p.image = image
				return p.memory.adopt(file, image.length)
			}
			// A file that is cut off or of another format is replaced below.
			file.Close()
		} else if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("open the interpreter's image: %w", err)
		}
	}
	image, memory, err := p.makeImage(ctx)
	if err != nil {
		return err
	}
	file, err := writeImage(home, image, memory)
	if err != nil {
		return err
	}
	if home != "" {
		if err := sweepCache(home, time.Now().Add(-cacheAge)); err != nil {
			// What could not be removed costs room on the disk, and is tried again with the next version.
			fmt.Fprintf(os.Stderr, "remove versions of the interpreter that are not used: %v\n", err)
		}
	}
	p.image = image
	return p.memory.adopt(file, image.length)
}

// makeImage starts CPython and stops it in the middle of its bootstrap, when all is imported. The frames of that
// bootstrap stay on the C stack below which calls run, and are never returned to.
func (p *python) makeImage(ctx context.Context) (pythonImage, []byte, error) {
	mod, err := p.instantiate(ctx)
	if err != nil {
		return pythonImage{}, nil, err
	}
	p.stdout.reset(1 << 10)
	p.stderr.reset(16 << 10)
	p.starting = true
	_, err = mod.ExportedFunction("_start").Call(ctx)
	p.starting = false
	if !errors.Is(err, errReady) {
		return pythonImage{}, nil, fmt.Errorf("start the interpreter: %w: %s", err, p.stderr.bytes())
	}
	function, err := strconv.ParseUint(string(p.stdout.bytes()), 10, 32)
	if err != nil {
		return pythonImage{}, nil, fmt.Errorf("start the interpreter: it named no function: %w", err)
	}
	entry, ok := mod.Memory().ReadUint32Le(uint32(function) + vectorcallOffset)
	if !ok {
		return pythonImage{}, nil, fmt.Errorf("start the interpreter: function at %#x is outside its memory", function)
	}
	memory, _ := mod.Memory().Read(0, mod.Memory().Size())
	image := pythonImage{
		// The frames below are left alone, and 16 is the alignment of the C stack.
		stack:    uint32(mod.ExportedGlobal(stackPointer).Get()) &^ 15,
		function: uint32(function),
		entry:    entry,
		length:   len(memory),
	}
	return image, memory, nil
}

// writeImage keeps the image under its name, or in a nameless file where there is no directory. Pages of zeros are not
// written: the file has holes there and so costs no memory.
func writeImage(home string, image pythonImage, memory []byte) (*os.File, error) {
	var file *os.File
	var err error
	if home == "" {
		file, err = tempImage()
	} else {
		file, err = os.CreateTemp(home, imageName+"-*.tmp")
	}
	if err != nil {
		return nil, err
	}
	if err := fillImage(file, image, memory); err != nil {
		file.Close()
		return nil, fmt.Errorf("write the interpreter's image: %w", err)
	}
	if home == "" {
		return file, nil
	}
	if err := os.Rename(file.Name(), filepath.Join(home, imageName)); err != nil {
		return nil, fmt.Errorf("keep the interpreter's image: %w", err)
	}
	return file, nil
}

func fillImage(file *os.File, image pythonImage, memory []byte) error {
	zero := make([]byte, 1<<16)
	for at := 0; at < len(memory); at += len(zero) {
		page := memory[at : at+len(zero)]
		if string(page) == string(zero) {
			continue
		}
		if _, err := file.WriteAt(page, int64(at)); err != nil {
			return err
		}
	}
	trailer := binary.LittleEndian.AppendUint64(nil, imageMagic)
	for _, v := range []uint32{image.stack, image.function, image.entry, uint32(image.length)} {
		trailer = binary.LittleEndian.AppendUint32(trailer, v)
	}
	if _, err := file.WriteAt(trailer, int64(len(memory))); err != nil {
		return err
	}
	return file.Sync()
}

func readTrailer(file *os.File) (pythonImage, error) {
	info, err := file.Stat()
	if err != nil {
		return pythonImage{}, err
	}
	var b [imageTrailer]byte
	if _, err := file.ReadAt(b[:], info.Size()-imageTrailer); err != nil {
		return pythonImage{}, err
	}
	v := func(i int) uint32 { return binary.LittleEndian.Uint32(b[8+4*i:]) }
	image := pythonImage{stack: v(0), function: v(1), entry: v(2), length: int(v(3))}
	if binary.LittleEndian.Uint64(b[:]) != imageMagic || int64(image.length) != info.Size()-imageTrailer {
		return pythonImage{}, errors.New("not an image of the interpreter")
	}
	return image, nil
}

// vectorcall is the type of the C function that calls a Python function: function, arguments, their number, names.
func vectorcall() (params, results []api.ValueType) {
	return []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}
}
