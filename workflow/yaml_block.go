package workflow

import (
	"slices"
	"strings"
)

// block reads a scalar after | or >: its header, then the lines that are indented further than the parent.
func (s *yamlScanner) block() *flaw {
	tk := yamlToken{kind: tokenBlock, line: s.line, col: s.col()}
	folded := s.data[s.pos] == '>'
	s.pos++
	indent, chomp, fault := s.blockHeader()
	if fault != nil {
		return fault
	}
	lines, trailing := s.blockLines(indent)
	var text []byte
	if folded {
		text = foldLines(lines)
	} else {
		text = []byte(strings.Join(lines, "\n"))
	}
	switch {
	case chomp == '+':
		if len(lines) > 0 {
			trailing++
		}
		text = append(text, slices.Repeat([]byte{'\n'}, trailing)...)
	case chomp == 0 && len(lines) > 0:
		text = append(text, '\n')
	}
	tk.text, tk.end = string(text), s.line
	s.tokens = append(s.tokens, tk)
	return nil
}

// blockHeader reads the marks after | or > and the rest of their line. The indent is -1 when it is to be found out.
func (s *yamlScanner) blockHeader() (indent int, chomp byte, fault *flaw) {
	indent = -1
	for !ends(s.at(0)) {
		switch c := s.at(0); {
		case (c == '+' || c == '-') && chomp == 0:
			chomp = c
		case c >= '1' && c <= '9' && indent < 0:
			indent = max(s.parent, 0) + int(c-'0')
			if s.parent < 0 {
				indent = int(c - '0')
			}
		default:
			return 0, 0, s.flaw("after | or > only a digit, + or - may stand; begin the text on the next line, or put it in quotes")
		}
		s.pos++
	}
	for s.at(0) == ' ' || s.at(0) == '\t' {
		s.pos++
	}
	if s.at(0) == '#' {
		s.comment()
	}
	if s.at(0) != '\n' {
		return 0, 0, s.flaw("the text of a block begins on the line after | or >")
	}
	if s.pos < len(s.data) {
		s.newline()
	}
	return indent, chomp, nil
}

// blockLines reads the lines of a block without their indentation. Empty lines at the end are counted only.
func (s *yamlScanner) blockLines(indent int) (lines []string, trailing int) {
	for s.pos < len(s.data) {
		end := strings.IndexByte(s.data[s.pos:], '\n')
		if end < 0 {
			end = len(s.data) - s.pos
		}
		line := s.data[s.pos : s.pos+end]
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		if spaces == len(line) && (indent < 0 || spaces <= indent) {
			trailing++
		} else {
			if indent < 0 && spaces > s.parent {
				indent = spaces
			}
			if indent < 0 || spaces < indent || spaces == 0 && (s.marker("---") || s.marker("...")) {
				break
			}
			for range trailing {
				lines = append(lines, "")
			}
			trailing = 0
			lines = append(lines, line[indent:])
		}
		s.pos += end
		if s.pos < len(s.data) {
			s.newline()
		}
	}
	return lines, trailing
}

// foldLines joins the lines of a folded block: a single break becomes a space, empty lines become breaks, and breaks
// around lines that are indented further stay.
func foldLines(lines []string) []byte {
	var out []byte
	empty, deeper := 0, false
	for i, line := range lines {
		if line == "" {
			empty++
			continue
		}
		more := line[0] == ' ' || line[0] == '\t'
		breaks := empty
		if i > empty && (more || deeper) {
			breaks++
		}
		if breaks == 0 && len(out) > 0 {
			out = append(out, ' ')
		}
		out = append(out, slices.Repeat([]byte{'\n'}, breaks)...)
		out = append(out, line...)
		empty, deeper = 0, more
	}
	return out
}
