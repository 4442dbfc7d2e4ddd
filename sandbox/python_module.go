package sandbox

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"tandem/fault"
)

// modules holds the interpreter as scripts/python_wasm.sh leaves it: the code and data of CPython with its standard
// library, compressed. It is not kept in version control; a build without it has no Python and says so when asked.
//
//go:embed module
var modules embed.FS // read-only

//go:embed python_bootstrap.py
var pythonBootstrap string // read-only

const (
	pythonFile = "module/python.wasm.gz"
	// stackPointer is the name under which the interpreter's only global is exported by exportGlobal.
	stackPointer = "tandem_stack_pointer"
)

// pythonAvailable says whether this binary was built with the interpreter; it does not unpack it.
func pythonAvailable() bool {
	_, err := fs.Stat(modules, pythonFile)
	return err == nil
}

// pythonModule unpacks the interpreter. It costs some hundred milliseconds and is called by children only.
func pythonModule() ([]byte, error) {
	f, err := modules.Open(pythonFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unsupported, "this binary was built without the Python interpreter; run scripts/python_wasm.sh and build again")
	}
	if err != nil {
		return nil, fmt.Errorf("open the embedded interpreter: %w", err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("unpack the embedded interpreter: %w", err)
	}
	wasm, err := io.ReadAll(zr)
	if err != nil {
		return nil, fmt.Errorf("unpack the embedded interpreter: %w", err)
	}
	return exportGlobal(wasm, 0, stackPointer)
}

// exportGlobal adds one export to a WebAssembly module. The host must set the stack pointer when it puts the
// interpreter back to its first state, and compilers do not export it.
func exportGlobal(wasm []byte, index byte, name string) ([]byte, error) {
	const header, exportSection, kindGlobal = 8, 7, 3
	if len(wasm) < header || !bytes.Equal(wasm[:4], []byte("\x00asm")) {
		return nil, errors.New("the embedded interpreter is not a WebAssembly module; run scripts/python_wasm.sh again")
	}
	for at := header; at < len(wasm); {
		id := wasm[at]
		size, n := binary.Uvarint(wasm[at+1:])
		body := at + 1 + n
		if n <= 0 || size > uint64(len(wasm)-body) {
			return nil, fmt.Errorf("section %d at byte %d of the embedded interpreter is cut off; run scripts/python_wasm.sh again", id, at)
		}
		end := body + int(size)
		if id != exportSection {
			at = end
			continue
		}
		count, n := binary.Uvarint(wasm[body:end])
		if n <= 0 {
			return nil, errors.New("the export section of the embedded interpreter has no count")
		}
		section := binary.AppendUvarint(nil, count+1)
		section = append(section, wasm[body+n:end]...)
		section = binary.AppendUvarint(section, uint64(len(name)))
		section = append(section, name...)
		section = append(section, kindGlobal, index)

		out := make([]byte, 0, len(wasm)+len(name)+16)
		out = append(out, wasm[:at]...)
		out = append(out, exportSection)
		out = binary.AppendUvarint(out, uint64(len(section)))
		out = append(out, section...)
		return append(out, wasm[end:]...), nil
	}
	return nil, errors.New("the embedded interpreter has no export section")
}
