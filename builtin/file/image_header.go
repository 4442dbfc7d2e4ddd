package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

// What the first bytes of a picture say of it.

// decoderDefect turns a panic of a decoder into an error: what a picture does to it is the picture's fault.
func decoderDefect(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the decoder stopped: %v", p)
	}
}

// imageFormat tells the format by the first bytes.
func imageFormat(data []byte) string {
	head := string(data[:min(len(data), 16)])
	switch {
	case strings.HasPrefix(head, "\x89PNG\r\n\x1a\n"):
		return "png"
	case strings.HasPrefix(head, "\xff\xd8\xff"):
		return "jpeg"
	case strings.HasPrefix(head, "GIF87a"), strings.HasPrefix(head, "GIF89a"):
		return "gif"
	case strings.HasPrefix(head, "RIFF") && len(head) >= 12 && head[8:12] == "WEBP":
		return "webp"
	case strings.HasPrefix(head, "BM"):
		return "bmp"
	}
	return "" // no tiff: its parts may become any size, whatever the header says
}

// decoder reads the pictures of one format: what their header says, or all of them.
type decoder struct {
	config func(io.Reader) (image.Config, error)
	pixels func(io.Reader) (image.Image, error)
}

func (p *picture) decoder() decoder {
	switch p.format {
	case "png":
		return decoder{png.DecodeConfig, png.Decode}
	case "jpeg":
		return decoder{jpeg.DecodeConfig, jpeg.Decode}
	case "gif":
		return decoder{gif.DecodeConfig, gif.Decode}
	case "webp":
		return decoder{webp.DecodeConfig, webp.Decode}
	}
	return decoder{bmp.DecodeConfig, bmp.Decode}
}

func (p *picture) config() (c image.Config, err error) {
	defer decoderDefect(&err)
	return p.decoder().config(bytes.NewReader(p.data))
}

// webpPixels is the largest size that any part of a file claims: its decoder takes that of the part, not of the canvas.
func webpPixels(data []byte) int64 {
	var most int64
	for at := 12; at+8 <= len(data); {
		kind, size := string(data[at:at+4]), int64(binary.LittleEndian.Uint32(data[at+4:]))
		body := data[at+8:]
		switch {
		case kind == "VP8 " && len(body) >= 10:
			w, h := binary.LittleEndian.Uint16(body[6:])&0x3fff, binary.LittleEndian.Uint16(body[8:])&0x3fff
			most = max(most, int64(w)*int64(h))
		case kind == "VP8L" && len(body) >= 5:
			bits := binary.LittleEndian.Uint32(body[1:])
			most = max(most, int64(bits&0x3fff+1)*int64(bits>>14&0x3fff+1))
		}
		next := int64(at) + 8 + size + size&1
		if next > int64(len(data)) {
			break
		}
		at = int(next)
	}
	return most
}

// jpegOrientation reads how a camera was held; 1 when nothing says so.
func jpegOrientation(data []byte) int {
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		marker, size := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == 0xda || size < 2 || at+2+size > len(data) {
			break
		}
		if body := data[at+4 : at+2+size]; marker == 0xe1 && bytes.HasPrefix(body, []byte("Exif\x00\x00")) {
			return exifOrientation(body[6:])
		}
		at += 2 + size
	}
	return 1
}

func exifOrientation(b []byte) int {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(b) < 8:
		return 1
	case b[0] == 'M':
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return 1
	}
	count := int64(order.Uint16(b[at:]))
	for i := range count {
		e := at + 2 + i*12
		if e+12 > int64(len(b)) {
			break
		}
		if order.Uint16(b[e:]) == 0x0112 {
			if n := int(order.Uint16(b[e+8:])); n >= 1 && n <= 8 {
				return n
			}
		}
	}
	return 1
}
