//go:build !386 && !arm && !mips && !mipsle

package sandbox

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// jsonWriter writes plain values as JSON.stringify does, straight from the engine's memory and many times faster. Plain
// is what data consists of: objects without getters, whole arrays, texts, numbers, booleans, null. Whatever could run
// code of the program (toJSON, getters, proxies) or needs a rule of its own is left to the engine: plain becomes false.
//
// It only reads. The layouts are those of the engine's own structures; a test compares it with the engine.
type jsonWriter struct {
	ctx   *lib.TJSContext
	atoms uintptr // the engine's array of property names
	limit int     // of bytes
	plain bool
	// harmless is the prototype that was last seen to lead to no toJSON.
	harmless uintptr
}

const (
	jsonDepth = 200
	// Of a shape's property: 26 bits for the hash chain, then the flags.
	jsonFlagShift = 26
	jsFastArray   = 0x10
	jsTextOffset  = unsafe.Sizeof(lib.TJSString{})
)

func (js *javaScript) appendPlain(b []byte, v lib.TJSValue, limit int) ([]byte, bool) {
	w := jsonWriter{ctx: (*lib.TJSContext)(pointer(js.ctx)), limit: limit, plain: true}
	w.atoms = (*lib.TJSRuntime)(pointer(js.runtime)).Fatom_array
	b = w.value(b, v, 0)
	return b, w.plain
}

func (w *jsonWriter) value(b []byte, v lib.TJSValue, depth int) []byte {
	if depth > jsonDepth || len(b) > w.limit {
		w.plain = false
		return b
	}
	switch int32(v.Ftag) {
	case lib.EJS_TAG_STRING:
		return appendJSText(b, jsAddress(v))
	case lib.EJS_TAG_INT:
		return strconv.AppendInt(b, int64(int32(v.Fu.Fuint641)), 10)
	case lib.EJS_TAG_FLOAT64:
		if f := math.Float64frombits(v.Fu.Fuint641); f-f == 0 {
			return appendJSNumber(b, f)
		}
	case lib.EJS_TAG_BOOL:
		return strconv.AppendBool(b, int32(v.Fu.Fuint641) != 0)
	case lib.EJS_TAG_NULL:
		return append(b, "null"...)
	case lib.EJS_TAG_OBJECT:
		switch o := (*lib.TJSObject)(pointer(jsAddress(v))); o.Fclass_id {
		case lib.EJS_CLASS_OBJECT:
			return w.object(b, o, depth)
		case lib.EJS_CLASS_ARRAY:
			return w.array(b, o, depth)
		}
	}
	w.plain = false
	return b
}

// silent says whether an object and its prototypes have no toJSON. No code runs while it is written, so what was seen
// of a prototype once holds to the end.
func (w *jsonWriter) silent(o *lib.TJSObject) bool {
	shape := (*lib.TJSShape)(pointer(o.Fshape))
	if hasToJSON(shape) {
		return false
	}
	if shape.Fproto == w.harmless {
		return true
	}
	for at := shape.Fproto; at != 0; {
		proto := (*lib.TJSObject)(pointer(at))
		of := (*lib.TJSShape)(pointer(proto.Fshape))
		if proto.Fclass_id != lib.EJS_CLASS_OBJECT && proto.Fclass_id != lib.EJS_CLASS_ARRAY || hasToJSON(of) {
			return false
		}
		at = of.Fproto
	}
	w.harmless = shape.Fproto
	return true
}

// properties returns the names and flags of a shape, in the order in which they were defined. Before them, after the
// shape itself, lies the hash table over them.
func properties(shape *lib.TJSShape) []lib.TJSShapeProperty {
	at := unsafe.Add(unsafe.Pointer(shape), unsafe.Sizeof(*shape)+(uintptr(shape.Fprop_hash_mask)+1)*4)
	return unsafe.Slice((*lib.TJSShapeProperty)(at), shape.Fprop_count)
}

func hasToJSON(shape *lib.TJSShape) bool {
	for _, p := range properties(shape) {
		if p.Fatom == lib.EJS_ATOM_toJSON {
			return true
		}
	}
	return false
}

func (w *jsonWriter) object(b []byte, o *lib.TJSObject, depth int) []byte {
	if !w.silent(o) {
		w.plain = false
		return b
	}
	names := properties((*lib.TJSShape)(pointer(o.Fshape)))
	values := unsafe.Slice((*lib.TJSValue)(pointer(o.Fprop)), len(names))
	b = append(b, '{')
	first := true
	for i, name := range names {
		flags := name.F__ccgo0 >> jsonFlagShift
		if name.Fatom == lib.MJS_ATOM_NULL || flags&lib.MJS_PROP_ENUMERABLE == 0 {
			continue // deleted, or not to be seen
		}
		if flags&lib.MJS_PROP_TMASK != 0 || name.Fatom >= lib.MJS_ATOM_TAG_INT {
			w.plain = false // a getter; a number, which has its place before the others
			return b
		}
		text := *(*uintptr)(pointer(w.atoms + uintptr(name.Fatom)*unsafe.Sizeof(uintptr(0))))
		head := (*lib.TJSString)(pointer(text))
		if head.F__ccgo4>>30 != lib.EJS_ATOM_TYPE_STRING || int32(values[i].Ftag) == lib.EJS_TAG_UNDEFINED {
			continue
		}
		if head.F__ccgo0 != 0 && isDigit(*(*byte)(pointer(text + jsTextOffset))) {
			w.plain = false // a large number
			return b
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendJSText(b, text), ':')
		if b = w.value(b, values[i], depth+1); !w.plain {
			return b
		}
	}
	return append(b, '}')
}

func (w *jsonWriter) array(b []byte, o *lib.TJSObject, depth int) []byte {
	type elements struct {
		room   uint64
		values uintptr
		count  uint32
	}
	all := (*elements)(unsafe.Pointer(&o.Fu))
	// The first property of an array is its length, which may be more than it has elements.
	length := *(*lib.TJSValue)(pointer(o.Fprop))
	if o.F__ccgo16&jsFastArray == 0 || int32(length.Ftag) != lib.EJS_TAG_INT || uint32(length.Fu.Fuint641) != all.count || !w.silent(o) {
		w.plain = false
		return b
	}
	b = append(b, '[')
	for i, v := range unsafe.Slice((*lib.TJSValue)(pointer(all.values)), all.count) {
		if i > 0 {
			b = append(b, ',')
		}
		if int32(v.Ftag) == lib.EJS_TAG_UNDEFINED {
			b = append(b, "null"...)
			continue
		}
		if b = w.value(b, v, depth+1); !w.plain {
			return b
		}
	}
	return append(b, ']')
}

// jsAddress is where a value that is not a number lies.
func jsAddress(v lib.TJSValue) uintptr { return uintptr(v.Fu.Fuint641) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// appendJSNumber writes a number as JavaScript does.
func appendJSNumber(b []byte, f float64) []byte {
	if f == 0 {
		return append(b, '0') // also the negative one
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	if n := len(b); b[n-4] == 'e' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-07 is e-7 there
		b = b[:n-1]
	}
	return b
}

// appendJSText writes a string of the engine: its length and whether its characters have two bytes, then the characters.
func appendJSText(b []byte, at uintptr) []byte {
	head := (*lib.TJSString)(pointer(at)).F__ccgo0
	n, wide := head&(1<<31-1), head>>31 != 0
	b = append(b, '"')
	if wide {
		b = appendWide(b, unsafe.Slice((*uint16)(pointer(at+jsTextOffset)), n))
	} else {
		s := unsafe.Slice((*byte)(pointer(at+jsTextOffset)), n)
		done := 0
		for i, c := range s {
			if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
				continue
			}
			b = appendJSChar(append(b, s[done:i]...), rune(c))
			done = i + 1
		}
		b = append(b, s[done:]...)
	}
	return append(b, '"')
}

func appendWide(b []byte, s []uint16) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(s); i++ {
		c := rune(s[i])
		if utf16.IsSurrogate(c) {
			if i+1 < len(s) {
				if pair := utf16.DecodeRune(c, rune(s[i+1])); pair != utf8.RuneError {
					b = utf8.AppendRune(b, pair)
					i++
					continue
				}
			}
			b = append(b, '\\', 'u', hex[c>>12], hex[c>>8&15], hex[c>>4&15], hex[c&15])
			continue
		}
		b = appendJSChar(b, c)
	}
	return b
}

func appendJSChar(b []byte, c rune) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', byte(c))
	case '\n':
		return append(b, '\\', 'n')
	case '\t':
		return append(b, '\\', 't')
	case '\r':
		return append(b, '\\', 'r')
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	}
	if c < ' ' {
		return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return utf8.AppendRune(b, c)
}
