package data

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"unicode"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

type splitConfig struct {
	Unit      string `json:"unit" enum:"characters|tokens" doc:"What chunk_size and overlap count. Tokens are estimated, four letters or one Chinese character each." zh:"单位：chunk_size 与 overlap 的单位；令牌数为估算，四个字母或一个汉字为一个。"`
	ChunkSize int    `json:"chunk_size" range:"20..20000" doc:"The most that a chunk has." zh:"每块的最大长度。"`
	Overlap   int    `json:"overlap" range:"0..10000" doc:"How much of a chunk the next one begins with, at most half of chunk_size." zh:"重叠：后一块开头与前一块重复的长度，最多为 chunk_size 的一半。"`
}

func (c *splitConfig) Defaults() { c.Unit, c.ChunkSize, c.Overlap = "characters", 1000, 100 }

type splitInput struct {
	Text     string          `json:"text" doc:"The text." zh:"要切分的文本。"`
	Parts    []splitPart     `json:"parts,omitempty" doc:"Its parts, as ACTION.DOCUMENT_LOADER tells them. No chunk goes from one page or section into another; rows are joined." zh:"文本的各部分，由 ACTION.DOCUMENT_LOADER 提供；一块不会跨页或跨章节，行可以合并。"`
	Document string          `json:"document,omitempty" doc:"What the document is called in sources." zh:"来源中的文档名称。"`
	Title    string          `json:"title,omitempty" doc:"Its title." zh:"文档标题。"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"Fields that every chunk gets besides." zh:"附加到每一块的字段。"`
}

// splitPart is a part of the text, from one character to another.
type splitPart struct {
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Page    int    `json:"page,omitempty"`
	Section string `json:"section,omitempty"`
	Row     int    `json:"row,omitempty"`
}

// splitChunk is an item as MEMORY.VECTOR_DATABASE stores it.
type splitChunk struct {
	ID       string          `json:"id"`
	Content  string          `json:"content"`
	Metadata json.RawMessage `json:"metadata"`
}

// chunkSource is where a chunk comes from. Start and End are in characters of the text.
type chunkSource struct {
	Document string `json:"document"`
	Title    string `json:"title,omitempty"`
	Chunk    int    `json:"chunk"`
	Page     int    `json:"page,omitempty"`
	Section  string `json:"section,omitempty"`
	Row      int    `json:"row,omitempty"`
	Start    int    `json:"start"`
	End      int    `json:"end"`
}

type splitOutput struct {
	Chunks   []splitChunk `json:"chunks" doc:"The chunks, each with id, content, and in metadata its document, chunk, page, section, row, start and end." zh:"各块：含 id、content，以及 metadata 中的 document、chunk、page、section、row、start 和 end。"`
	Count    int          `json:"count" doc:"How many there are." zh:"块数。"`
	Document string       `json:"document" doc:"What the document is called in sources." zh:"来源中的文档名称。"`
}

// maxChunks is how many chunks one text may become.
const maxChunks = 20_000

// textSplitter cuts a text into chunks that are found one by one.
func textSplitter() node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.TEXT_SPLITTER", Title: node.Says("Text splitter", "文本切分"),
			Description: node.Says("Cuts a text into chunks that know where they come from, at paragraphs, lines, sentences or words where it can.",
				"把文本切分为带有出处的块，尽可能在段落、行、句子或词语处断开。"),
			Effect: workflow.Pure,
			Keys:   []node.Key{{Name: "result", Meaning: node.Says("The chunks, as MEMORY.VECTOR_DATABASE stores them.", "各块，可由 MEMORY.VECTOR_DATABASE 保存。")}},
			Examples: []node.Example{{
				Shows:  node.Says("Cuts a text at the end of a sentence.", "在句末切分文本。"),
				Config: `{"chunk_size": 30, "overlap": 0}`,
				Input:  `{"text": "Everybody has 25 days. Trainees have 30 days.", "document": "leave.md"}`,
				Output: `{"result": {"chunks": [{"id": "leave.md:1", "content": "Everybody has 25 days.", "metadata": {"document": "leave.md", "chunk": 1, "start": 0, "end": 22}}, {"id": "leave.md:2", "content": "Trainees have 30 days.", "metadata": {"document": "leave.md", "chunk": 2, "start": 23, "end": 45}}], "count": 2, "document": "leave.md"}}`,
			}},
		},
		func(ctx context.Context, _ *node.Call, cfg splitConfig, in splitInput) (splitOutput, error) {
			if cfg.Overlap > cfg.ChunkSize/2 {
				return splitOutput{}, fault.Newf(fault.InvalidConfig, `"overlap" is %d, more than half of chunk_size (%d)`, cfg.Overlap, cfg.ChunkSize).With("path", "configurations.overlap")
			}
			if !values.IsNull(in.Metadata) && !values.IsObject(in.Metadata) {
				return splitOutput{}, fault.New(fault.InvalidInput, `"metadata" must be an object`).With("path", "metadata")
			}
			return cfg.split(ctx, in)
		}, func(p *node.Planning, c *splitConfig) {
			if c.Overlap > c.ChunkSize/2 && !p.Templated() {
				p.Invalid(p.At("overlap"), "is %d, more than half of chunk_size (%d)", c.Overlap, c.ChunkSize)
			}
		})
}

func (c *splitConfig) split(ctx context.Context, in splitInput) (splitOutput, error) {
	s := splitter{text: []rune(in.Text), tokens: c.Unit == "tokens", size: int64(c.ChunkSize), overlap: int64(c.Overlap)}
	if s.tokens {
		s.size, s.overlap = 4*s.size, 4*s.overlap
	}
	out := splitOutput{Chunks: []splitChunk{}, Document: cmp.Or(in.Document, in.Title, "text")}
	for _, part := range joined(in.Parts, len(s.text)) {
		for _, at := range s.cut(part.Start, part.End) {
			if err := ctx.Err(); err != nil {
				return splitOutput{}, fault.From(context.Cause(ctx))
			}
			if len(out.Chunks) == maxChunks {
				return splitOutput{}, fault.Newf(fault.TooLarge, "the text becomes more than %d chunks; make chunk_size larger", maxChunks).With("limit", maxChunks)
			}
			n := len(out.Chunks) + 1
			row := part.Row
			if row > 0 {
				row = rowAt(in.Parts, at[0], row)
			}
			source, err := payload.Encode(chunkSource{out.Document, in.Title, n, part.Page, part.Section, row, at[0], at[1]})
			if err != nil {
				return splitOutput{}, fault.From(err)
			}
			fields := values.Members(source)
			for _, m := range values.Members(in.Metadata) {
				if _, own := (values.Path{m.Key}).Walk(source); !own {
					fields = append(fields, m)
				}
			}
			out.Chunks = append(out.Chunks, splitChunk{fmt.Sprintf("%s:%d", out.Document, n),
				string(s.text[at[0]:at[1]]), values.Object(fields)})
		}
	}
	out.Count = len(out.Chunks)
	return out, nil
}

// joined are the parts between which no chunk goes: rows that follow each other are one, and so is what no part has.
func joined(parts []splitPart, length int) []splitPart {
	var list []splitPart
	at := 0
	for _, p := range parts {
		p.Start, p.End = min(max(p.Start, at), length), min(max(p.End, at), length)
		if p.Start > at {
			list = append(list, splitPart{Start: at, End: p.Start})
		}
		at = max(at, p.End)
		if n := len(list); n > 0 && p.Row > 0 && list[n-1].Row > 0 && list[n-1].Page == p.Page && list[n-1].Section == p.Section {
			list[n-1].End = p.End
			continue
		}
		list = append(list, p)
	}
	if at < length {
		list = append(list, splitPart{Start: at, End: length})
	}
	return list
}

// rowAt is the row that a place in the text is in.
func rowAt(parts []splitPart, at, otherwise int) int {
	low, high := 0, len(parts) // parts are in order
	for low < high {
		if middle := (low + high) / 2; parts[middle].Start <= at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return otherwise
	}
	return cmp.Or(parts[low-1].Row, otherwise)
}

// splitter cuts a text. Sizes are in characters, or in quarters of tokens.
type splitter struct {
	text          []rune
	tokens        bool
	size, overlap int64
}

func (s *splitter) cost(r rune) int64 {
	if s.tokens {
		return llm.TokenQuarters(r)
	}
	return 1
}

// cut returns where the chunks of a part begin and end.
func (s *splitter) cut(start, end int) (list [][2]int) {
	for at := start; at < end; {
		stop, spent := at, int64(0)
		for stop < end && spent+s.cost(s.text[stop]) <= s.size {
			spent += s.cost(s.text[stop])
			stop++
		}
		if stop < end {
			stop = s.breakBefore(at, stop)
		}
		from, to := at, stop
		for from < to && unicode.IsSpace(s.text[from]) {
			from++
		}
		for to > from && unicode.IsSpace(s.text[to-1]) {
			to--
		}
		if from < to {
			list = append(list, [2]int{from, to})
		}
		if stop == end {
			break
		}
		at = s.again(at, stop)
	}
	return list
}

// breakBefore is the best place to end a chunk, in the second half of what it may have: after a paragraph, a line, a sentence or a word.
func (s *splitter) breakBefore(at, stop int) int {
	best, rank := stop, 0
	for i := stop; i > at+(stop-at)/2; i-- {
		if r := s.rank(i); r > rank {
			best, rank = i, r
		}
	}
	return best
}

// rank says how well a text can be cut before a character.
func (s *splitter) rank(i int) int {
	before, next := s.text[i-1], rune(0)
	if i < len(s.text) {
		next = s.text[i]
	}
	switch {
	case before == '\n' && i > 1 && s.text[i-2] == '\n':
		return 4
	case before == '\n':
		return 3
	case before == '。' || before == '！' || before == '？':
		return 2
	case (before == '.' || before == '!' || before == '?') && unicode.IsSpace(next):
		return 2
	case unicode.IsSpace(before) || unicode.IsSpace(next):
		return 1
	}
	return 0
}

// again is where the next chunk begins: the overlap before the end of the last one, at the beginning of a word if there is one.
func (s *splitter) again(at, stop int) int {
	begin, spent := stop, int64(0)
	for begin > at+1 && spent+s.cost(s.text[begin-1]) <= s.overlap {
		begin--
		spent += s.cost(s.text[begin])
	}
	for i := begin; i < stop; i++ {
		if s.rank(i) > 0 {
			return i
		}
	}
	return begin
}
