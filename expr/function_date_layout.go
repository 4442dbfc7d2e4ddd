package expr

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// datePart is a part of a layout: a text as it is, or a part of a date.
type datePart struct {
	literal string
	// layout is that of the time package; bare cuts the leading zero of what it writes. Unix are the seconds since 1970.
	layout     string
	bare, unix bool
}

// DateLayout is how a date is written, read once.
type DateLayout struct{ parts []datePart }

// directives are the parts of a date that strftime has, as the time package writes them. read-only
var directives = map[string]datePart{
	"Y": {layout: "2006"}, "y": {layout: "06"}, "m": {layout: "01"}, "d": {layout: "02"}, "e": {layout: "_2"}, "j": {layout: "002"},
	"H": {layout: "15"}, "I": {layout: "03"}, "M": {layout: "04"}, "S": {layout: "05"}, "L": {layout: ".000"}, "p": {layout: "PM"},
	"a": {layout: "Mon"}, "A": {layout: "Monday"}, "b": {layout: "Jan"}, "B": {layout: "January"}, "F": {layout: "2006-01-02"},
	"T": {layout: "15:04:05"}, "z": {layout: "-0700"}, ":z": {layout: "-07:00"}, "s": {unix: true}, "%": {literal: "%"},
	"-m": {layout: "1"}, "-d": {layout: "2"}, "-H": {layout: "15", bare: true}, "-I": {layout: "3"},
	"-M": {layout: "4"}, "-S": {layout: "5"},
}

// letters are the parts of a date in layouts that are written with letters, as strftime calls them. read-only
var letters = map[string]string{
	"YYYY": "Y", "yyyy": "Y", "YY": "y", "yy": "y", "MMMM": "B", "MMM": "b", "MM": "m", "M": "-m", "DD": "d",
	"dd": "d", "D": "-d", "d": "-d",
	"dddd": "A", "EEEE": "A", "ddd": "a", "EEE": "a", "HH": "H", "H": "-H", "hh": "I", "h": "-I", "mm": "M",
	"m": "-M", "ss": "S", "s": "-S",
	"SSS": "L", "A": "p", "a": "p", "Z": ":z", "ZZ": "z",
}

// ReadDateLayout reads a layout: that of strftime ("%Y-%m-%d"), or one without a percent sign that is written with letters
// ("YYYY年MM月DD日", "yyyy-MM-dd'T'HH:mm:ss", "YYYY [at] HH:mm"). One that has no part of a date, or parts that are not known, is
// refused: it would write the same text for every date.
func ReadDateLayout(layout string) (DateLayout, error) {
	if strings.Contains(layout, "%") {
		return percentLayout(layout)
	}
	return letterLayout(layout)
}

func percentLayout(layout string) (DateLayout, error) {
	var l DateLayout
	for i := 0; i < len(layout); {
		if layout[i] != '%' {
			end := i + 1
			for end < len(layout) && layout[end] != '%' {
				end++
			}
			l.parts = append(l.parts, datePart{literal: layout[i:end]})
			i = end
			continue
		}
		size := 1
		if rest := layout[i+1:]; strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, ":") {
			size = 2
		}
		name := layout[i+1 : min(i+1+size, len(layout))]
		part, known := directives[name]
		if !known {
			return DateLayout{}, fmt.Errorf("does not know %q in its layout; write %%%% for a percent sign", "%"+name)
		}
		l.parts = append(l.parts, part)
		i += 1 + size
	}
	return l, nil
}

func letterLayout(layout string) (DateLayout, error) {
	var l DateLayout
	dated := false
	for i := 0; i < len(layout); {
		c := layout[i]
		closing := map[byte]byte{'[': ']', '\'': '\''}[c]
		switch {
		case closing != 0 && strings.IndexByte(layout[i+1:], closing) >= 0:
			end := i + 1 + strings.IndexByte(layout[i+1:], closing)
			l.parts = append(l.parts, datePart{literal: layout[i+1 : end]})
			i = end + 1
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			end := i + 1
			for end < len(layout) && layout[end] == c {
				end++
			}
			name, known := letters[layout[i:end]]
			switch {
			case known:
				l.parts = append(l.parts, directives[name])
				dated = true
			case layout[i:end] == "T":
				l.parts = append(l.parts, datePart{literal: "T"})
			default:
				return DateLayout{}, fmt.Errorf("does not know %q in the layout %q; write it like YYYY-MM-DD HH:mm:ss or %%Y-%%m-%%d %%H:%%M:%%S, and other words in square brackets", shortLayout(layout[i:end]), shortLayout(layout))
			}
			i = end
		default:
			l.parts = append(l.parts, datePart{literal: layout[i : i+1]})
			i++
		}
	}
	if !dated {
		return DateLayout{}, fmt.Errorf("finds no part of a date in the layout %q; write it like %%Y-%%m-%%d %%H:%%M:%%S or YYYY-MM-DD HH:mm:ss", shortLayout(layout))
	}
	return l, nil
}

// shortLayout is as much of a layout as an error shows.
func shortLayout(layout string) string {
	const most = 60
	if len(layout) <= most {
		return layout
	}
	return strings.ToValidUTF8(layout[:most], "") + "…"
}

// write writes a part of a date.
func (p datePart) write(t time.Time) string {
	switch {
	case p.unix:
		return strconv.FormatInt(t.Unix(), 10)
	case p.layout == "":
		return p.literal
	case p.layout == ".000":
		return t.Format(p.layout)[1:]
	case p.bare:
		text := t.Format(p.layout)
		if text[0] == '0' {
			return text[1:]
		}
		return text
	}
	return t.Format(p.layout)
}

// Parse reads a date that is written in the layout. What the text says of no zone is in the location.
func (l DateLayout) Parse(text string, location *time.Location) (time.Time, error) {
	var b strings.Builder
	for _, p := range l.parts {
		switch {
		case p.unix:
			return time.Time{}, fmt.Errorf("seconds since 1970 (%%s) are read without a layout")
		case p.layout == ".000":
			b.WriteString("000")
		case p.layout != "":
			b.WriteString(p.layout)
		default:
			b.WriteString(p.literal)
		}
	}
	return time.ParseInLocation(b.String(), text, location)
}
