package host

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
)

// maxPlainRow is how long a row may be that is read in the plain way, so that it cannot be deeper than any reader goes.
const maxPlainRow = 16 << 10

// decodePlainRow reads a row that is written as [Row.Encode] writes it, which most are, with less effort than a reader of any JSON
// needs. It leaves anything unusual to decodeRow. Both give the same result. The values of the row are parts of the body.
func decodePlainRow(seq uint64, time int64, body []byte) (row Row, ok bool) {
	if len(body) > maxPlainRow || !utf8.Valid(body) {
		return Row{}, false
	}
	row = Row{Seq: seq, Time: time, Facts: []engine.Fact{}, Stored: len(body)}
	r := plainRow{payload.ReadExact(string(body)), body}
	if r.Must(`{"facts":[`); !r.May("]") {
		row.Facts = r.facts()
	}
	if r.May(`,"values":[`) {
		row.Values = r.values()
	}
	if r.May(`,"large":`) {
		row.Large = r.large()
	}
	if r.May(`,"beside":`) {
		row.Beside = r.beside()
	}
	if r.May(`,"told":[`) {
		row.Told = r.told()
	}
	row.Closed = r.May(`,"closed":true`)
	r.Must("}")
	return row, r.OK && r.Left == ""
}

// plainRow is a row that is being read.
type plainRow struct {
	payload.Exact
	body []byte
}

// facts reads the facts of a list that has begun.
func (r *plainRow) facts() []engine.Fact {
	list := make([]engine.Fact, 0, 2)
	for more := true; more && r.OK; more = r.May(",") {
		fact, ok := engine.ReadFact(&r.Exact)
		if !ok {
			var err error
			fact, err = engine.DecodeFactText(r.Value())
			r.OK = r.OK && err == nil
		}
		list = append(list, fact)
	}
	r.Must("]")
	return list
}

// raw reads any value as a part of the body.
func (r *plainRow) raw() json.RawMessage {
	begin := len(r.body) - len(r.Left)
	end := begin + len(r.Value())
	return r.body[begin:end:end]
}

// values reads the values of a list that has begun.
func (r *plainRow) values() []json.RawMessage {
	list := make([]json.RawMessage, 0, 1)
	for more := true; more && r.OK; more = r.May(",") {
		list = append(list, r.raw())
	}
	r.Must("]")
	return list
}

// told reads the entries of a list that has begun.
func (r *plainRow) told() []Told {
	list := make([]Told, 0, 2)
	for more := true; more && r.OK; more = r.May(",") {
		list = append(list, Told{})
		r.toldOne(&list[len(list)-1])
	}
	r.Must("]")
	return list
}

// toldOne reads one entry, unless it has texts with escapes.
func (r *plainRow) toldOne(t *Told) {
	r.Must(`{"w":`)
	t.What = Telling(r.Text())
	if r.May(`,"a":`) {
		t.Activation = engine.ActivationID(r.Text())
	}
	if r.May(`,"g":`) {
		t.Generation = uint32(r.Number(32))
	}
	if r.May(`,"t":`) {
		t.Attempt = uint32(r.Number(32))
	}
	if r.May(`,"n":`) {
		t.Node = engine.NodeStatus(r.Text())
	}
	if r.May(`,"s":`) {
		t.Status = engine.Status(r.Text())
	}
	if r.May(`,"e":`) {
		t.Error = r.failure()
	}
	if r.May(`,"u":`) {
		t.Time = int64(r.Number(63))
	}
	if r.May(`,"k":`) {
		t.Ask = engine.AskID(r.Text())
	}
	if r.May(`,"p":`) {
		t.Purpose = r.Text()
	}
	if r.May(`,"r":`) {
		t.Ref = engine.Ref(r.Text())
	}
	if r.May(`,"d":`) {
		t.Detail = r.raw()
	}
	r.Must("}")
}

// large reads which values are kept beside the journal.
func (r *plainRow) large() (blobs map[int]Blob) {
	r.OK = json.Unmarshal([]byte(r.Value()), &blobs) == nil && r.OK
	return blobs
}

// beside reads which fields of values are kept beside the journal.
func (r *plainRow) beside() (fields map[int][]Beside) {
	r.OK = json.Unmarshal([]byte(r.Value()), &fields) == nil && r.OK
	return fields
}

// failure reads why something failed.
func (r *plainRow) failure() (why *fault.Error) {
	r.OK = json.Unmarshal([]byte(r.Value()), &why) == nil && r.OK
	return why
}

// plainText reads a text without escapes.
func plainText[T ~string](value gjson.Result, to *T) bool {
	*to = T(value.Str)
	return value.Type == gjson.String && len(value.Raw) == len(value.Str)+2
}
