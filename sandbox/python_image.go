package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// An image is CPython after it has started and imported its library: the bytes of its linear memory, the stack pointer
// and the address of the function that answers calls. Linear memory holds no address of this process, so an image made
// by one child serves every other, and is kept in the cache directory beside the compiled module.
//
// A file is the memory followed by a trailer: magic, stack pointer, function, table index, length of the memory, its checksum.
type pythonImage struct {
	stack    uint32 // the stack pointer at which calls begin
	function uint32 // the Python function that answers one call
	entry    uint32 // where the table has the C function that calls a Python function
	length   int
}

const (
	imageMagic   = 0x54414e44454d3032
	imageTrailer = 8 + 5*4
	// vectorcallOffset is where a function object of CPython 3.12 on a 32-bit machine keeps its vectorcall pointer.
	vectorcallOffset = 64
)

// errReady is thrown through the interpreter by the host function that it calls when it is ready to be copied.
var errReady = errors.New("the interpreter is ready") // read-only

// loadImage maps a kept image, or makes one and keeps it in home, which may be empty.
func (p *python) loadImage(ctx context.Context, home string) error {
	if home != "" {
		file, err := os.Open(filepath.Join(home, imageName))
		if err == nil {
			if image, sum, err := readTrailer(file); err == nil && sumOf(file, image.length) == sum {
				p.image = image
				return p.memory.adopt(file, image.length)
			}
			// A file that is cut off, damaged or of another format is replaced below.
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
	for _, v := range []uint32{image.stack, image.function, image.entry, uint32(image.length), crc32.Checksum(memory, imageTable())} {
		trailer = binary.LittleEndian.AppendUint32(trailer, v)
	}
	if _, err := file.WriteAt(trailer, int64(len(memory))); err != nil {
		return err
	}
	return file.Sync()
}

func imageTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// sumOf is the checksum of the memory in a file; one that cannot be read has that of nothing.
func sumOf(file *os.File, length int) uint32 {
	h := crc32.New(imageTable())
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, int64(length))); err != nil {
		return 0
	}
	return h.Sum32()
}

func readTrailer(file *os.File) (image pythonImage, sum uint32, err error) {
	info, err := file.Stat()
	if err != nil {
		return pythonImage{}, 0, err
	}
	var b [imageTrailer]byte
	if _, err := file.ReadAt(b[:], info.Size()-imageTrailer); err != nil {
		return pythonImage{}, 0, err
	}
	v := func(i int) uint32 { return binary.LittleEndian.Uint32(b[8+4*i:]) }
	image = pythonImage{stack: v(0), function: v(1), entry: v(2), length: int(v(3))}
	if binary.LittleEndian.Uint64(b[:]) != imageMagic || int64(image.length) != info.Size()-imageTrailer {
		return pythonImage{}, 0, errors.New("not an image of the interpreter")
	}
	return image, v(4), nil
}

// vectorcall is the type of the C function that calls a Python function: function, arguments, their number, names.
func vectorcall() (params, results []api.ValueType) {
	return []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}
}
