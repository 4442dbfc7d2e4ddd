package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/tiff"

	"tandem/builtin/fileref"
	"tandem/builtin/models"
	"tandem/builtin/toolset"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/workflow"
)

type imageToolConfig struct {
	toolset.Fields
	MaxPixels     int64  `json:"max_pixels" range:"1.." doc:"The most pixels of a picture." zh:"图片的最多像素数。"`
	OutputFormat  string `json:"output_format" enum:"png|jpeg" doc:"The format of pictures that are made." zh:"生成图片的格式。"`
	VisionProfile string `json:"vision_profile" names:"profile" doc:"The model profile that describes pictures." zh:"描述图片的模型配置档。"`
}

func (c *imageToolConfig) Defaults() {
	c.Approval, c.MaxPixels, c.OutputFormat = "inherit", 50_000_000, "png"
}

const (
	// maxImageFile bounds the encoded picture, maxImageSide each side of one that is made.
	maxImageFile = 64 << 20
	maxImageSide = 16_384
	// maxImageScans is how many scans a jpeg file may have, those of its thumbnails included: each goes over all pixels and
	// can be a few bytes long, and a decoder at work cannot be stopped.
	maxImageScans = 100
	// bigImage is from how many pixels on pictures are worked on one at a time: one can take a dozen bytes per pixel.
	bigImage     = 4_000_000
	smallImages  = 4
	imageQuality = 90
)

// imageProcessor gives a model pictures to look at and to change. What it makes is a new file among the stored values.
func imageProcessor(store *files.Store, models *models.Models) node.Kind {
	big, small := make(chan struct{}, 1), make(chan struct{}, smallImages)
	k := node.Define(
		node.About{
			Name: "TOOL.IMAGE_PROCESSOR", Title: node.Says("Image tools", "图像工具"),
			Description: node.Says("Describes, resizes, crops, rotates and converts pictures for a model.", "为模型描述、缩放、裁剪、旋转和转换图片。"),
			Effect:      workflow.Idempotent,
			Keys:        toolset.Keys(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Measures a picture.", "读取图片的尺寸。"),
					Config: `{}`,
					Input:  `{"tool_name": "image_info", "function_args": {"file": {"base64": "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==", "name": "a.png"}}}`,
					Output: `{"result": {"result": {"format": "png", "content_type": "image/png", "width": 2, "height": 2, "size": 73, "frames": 1, "color_model": "rgba", "orientation": 1}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "format": "png", "content_type": "image/png", "width": 2, "height": 2, "size": 73, "frames": 1, "color_model": "rgba", "orientation": 1}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg imageToolConfig, in toolset.Input) (toolset.Output, error) {
			x := &imageTools{store: store, models: models, call: call, cfg: cfg, big: big, small: small}
			return toolset.Run(ctx, call, cfg.Fields, in, x.tools())
		}, planImageTools)
	k.Tools = func(_ context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[imageToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		return toolset.Offered(cfg.Fields, (&imageTools{cfg: cfg}).tools()), nil
	}
	return k
}

type imageTools struct {
	store      *files.Store
	models     *models.Models
	call       *node.Call
	cfg        imageToolConfig
	big, small chan struct{} // a place in one of them is needed to decode
}

func (x *imageTools) tools() []toolset.Tool {
	list := []toolset.Tool{
		toolset.New("image_info", toolset.Reads, "Tells the format, the size and the metadata of a picture.", x.info),
		toolset.New("image_resize", toolset.Repeats, "Makes a picture of another size.", x.resize),
		toolset.New("image_crop", toolset.Repeats, "Cuts a part out of a picture.", x.crop),
		toolset.New("image_rotate", toolset.Repeats, "Turns a picture by 90, 180 or 270 degrees.", x.rotate),
		toolset.New("image_convert", toolset.Repeats, "Makes a picture of another format.", x.convert),
	}
	if x.cfg.VisionProfile != "" {
		list = append(list, toolset.New("image_describe", toolset.Reads, "Answers a question about what a picture shows.", x.describe))
	}
	return list
}

// imageArg is the picture: a path, a stored file, or one that holds its content.
type imageArg struct {
	File json.RawMessage `json:"file" required:"true"`
}

// picture is what a header says.
type picture struct {
	name, format  string
	data          []byte
	width, height int
	orientation   int // as cameras write it, 1 to 8
	model         color.Model
}

type imageInfo struct {
	Format      string `json:"format"`
	ContentType string `json:"content_type"`
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Size        int    `json:"size"`
	// Frames is more than one for an animation, of which the other tools take the first.
	Frames      int    `json:"frames"`
	ColorModel  string `json:"color_model"`
	Orientation int    `json:"orientation"`
}

type imageResult struct {
	File   *fileref.Value `json:"file"`
	Width  int            `json:"width"`
	Height int            `json:"height"`
}

// open reads a picture and its header, and refuses it by that before anything is decoded.
func (x *imageTools) open(ctx context.Context, raw json.RawMessage) (*picture, error) {
	source, err := fileref.Open(ctx, x.store, x.call, raw, "function_args.file", maxImageFile)
	if err != nil {
		return nil, err
	}
	data, err := source.ReadAll(ctx, maxImageFile)
	if err != nil {
		return nil, err
	}
	p := &picture{name: source.Name, data: data, format: imageFormat(data), orientation: 1}
	if p.format == "" {
		return nil, fault.Newf(fault.Unsupported, "%q is not a picture of a known format; there are png, jpeg, gif, webp and bmp", source.Name)
	}
	c, err := p.config()
	if err != nil {
		return nil, p.damaged(err)
	}
	p.width, p.height, p.model = c.Width, c.Height, c.ColorModel
	pixels := int64(c.Width) * int64(c.Height)
	if p.format == "webp" {
		pixels = max(pixels, webpPixels(data))
	}
	if p.width <= 0 || p.height <= 0 {
		return nil, p.damaged(nil)
	}
	if pixels > x.cfg.MaxPixels {
		return nil, fault.Newf(fault.TooLarge, "%q has %d pixels, more than the %d that max_pixels allows", p.name, pixels, x.cfg.MaxPixels).With("limit", x.cfg.MaxPixels)
	}
	if p.format == "jpeg" {
		if n := bytes.Count(data, []byte{0xff, 0xda}); n > maxImageScans {
			return nil, fault.Newf(fault.TooLarge, "%q goes over its pixels %d times, more than the %d that are taken", p.name, n, maxImageScans).With("limit", maxImageScans)
		}
		p.orientation = jpegOrientation(data)
	}
	return p, nil
}

func (p *picture) damaged(err error) error {
	return fault.Newf(fault.InvalidInput, "the picture %q is damaged", p.name).WithCause(err)
}

// decode makes pixels of a picture, upright. Release gives its place back.
func (x *imageTools) decode(ctx context.Context, raw json.RawMessage) (p *picture, m image.Image, release func(), err error) {
	if p, err = x.open(ctx, raw); err != nil {
		return nil, nil, nil, err
	}
	gate := x.small
	if int64(p.width)*int64(p.height) > bigImage {
		gate = x.big
	}
	select {
	case gate <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, fault.New(fault.Canceled, "the work on a picture was stopped").WithCause(context.Cause(ctx))
	}
	release = func() { <-gate }
	if m, err = p.pixels(); err == nil {
		if got := m.Bounds(); int64(got.Dx())*int64(got.Dy()) > x.cfg.MaxPixels {
			err = errors.New("it is larger than its header says")
		}
	}
	if err != nil {
		release()
		return nil, nil, nil, p.damaged(err)
	}
	return p, upright(m, p.orientation), release, nil
}

func (p *picture) pixels() (m image.Image, err error) {
	defer decoderDefect(&err)
	return p.decoder().pixels(bytes.NewReader(p.data))
}

// turned maps every pixel of a picture; swap says that width and height change places.
func turned(m image.Image, swap bool, from func(x, y, w, h int) (int, int)) image.Image {
	b := m.Bounds()
	w, h := b.Dx(), b.Dy()
	if swap {
		w, h = h, w
	}
	source := pixelsOf(m)
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			sx, sy := from(x, y, b.Dx(), b.Dy())
			copy(out.Pix[y*out.Stride+4*x:][:4], source.Pix[sy*source.Stride+4*sx:][:4])
		}
	}
	return out
}

// pixelsOf is a picture as plain pixels, with its corner at 0, 0.
func pixelsOf(m image.Image) *image.NRGBA {
	if n, ok := m.(*image.NRGBA); ok && n.Rect.Min == (image.Point{}) {
		return n
	}
	out := image.NewNRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(out, out.Rect, m, m.Bounds().Min, draw.Src)
	return out
}

// upright undoes how a camera was held.
func upright(m image.Image, orientation int) image.Image {
	switch orientation {
	case 2:
		return turned(m, false, func(x, y, w, _ int) (int, int) { return w - 1 - x, y })
	case 3:
		return rotated(m, 180)
	case 4:
		return turned(m, false, func(x, y, _, h int) (int, int) { return x, h - 1 - y })
	case 5:
		return turned(m, true, func(x, y, _, _ int) (int, int) { return y, x })
	case 6:
		return rotated(m, 90)
	case 7:
		return turned(m, true, func(x, y, w, h int) (int, int) { return w - 1 - y, h - 1 - x })
	case 8:
		return rotated(m, 270)
	}
	return m
}

// rotated turns a picture clockwise by 90, 180 or 270 degrees.
func rotated(m image.Image, degrees int) image.Image {
	switch degrees {
	case 90:
		return turned(m, true, func(x, y, _, h int) (int, int) { return y, h - 1 - x })
	case 180:
		return turned(m, false, func(x, y, w, h int) (int, int) { return w - 1 - x, h - 1 - y })
	case 270:
		return turned(m, true, func(x, y, w, _ int) (int, int) { return w - 1 - y, x })
	}
	return m
}

func (x *imageTools) info(ctx context.Context, a imageArg) (any, error) {
	p, err := x.open(ctx, a.File)
	if err != nil {
		return nil, err
	}
	out := imageInfo{
		Format: p.format, ContentType: fileref.TypeByName("x." + p.format), Width: p.width, Height: p.height, Size: len(p.data), Frames: 1,
		ColorModel: modelName(p.model), Orientation: p.orientation,
	}
	if p.format == "gif" {
		out.Frames = max(1, gifFrames(p.data))
	}
	return out, nil
}

// gifFrames counts pictures by the structure of the file, without decoding any.
func gifFrames(data []byte) int {
	frames := 0
	at := 13
	table := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	blocks := func() {
		for at < len(data) && data[at] != 0 {
			at += int(data[at]) + 1
		}
		at++
	}
	if len(data) > 10 {
		at += table(data[10])
	}
	for at < len(data) {
		switch data[at] {
		case 0x21:
			at += 2
			blocks()
		case 0x2c:
			if at+10 > len(data) {
				return frames
			}
			frames++
			at += 10 + table(data[at+9]) + 1
			blocks()
		default:
			return frames
		}
	}
	return frames
}

func modelName(m color.Model) string {
	switch m {
	case color.GrayModel, color.Gray16Model:
		return "gray"
	case color.CMYKModel:
		return "cmyk"
	case color.YCbCrModel:
		return "ycbcr"
	case color.NYCbCrAModel:
		return "ycbcra"
	}
	if _, ok := m.(color.Palette); ok {
		return "palette"
	}
	return "rgba"
}

type imageResizeArgs struct {
	imageArg
	Width  int    `json:"width" range:"1..16384"`
	Height int    `json:"height" range:"1..16384"`
	Fit    string `json:"fit" enum:"contain|cover|fill"`
}

func (a *imageResizeArgs) Defaults() { a.Fit = "contain" }

// resize makes a picture of the size asked for: contain keeps all of it and its shape, cover fills the size and cuts what
// is over, fill changes its shape. One side alone keeps the shape.
func (x *imageTools) resize(ctx context.Context, a imageResizeArgs) (any, error) {
	if a.Width == 0 && a.Height == 0 {
		return nil, fault.New(fault.ToolError, `set "width", "height" or both`).With("path", "function_args.width")
	}
	p, m, release, err := x.decode(ctx, a.File)
	if err != nil {
		return nil, err
	}
	defer release()
	b := m.Bounds()
	w, h, from := fitted(b, a.Width, a.Height, a.Fit)
	if w > maxImageSide || h > maxImageSide || int64(w)*int64(h) > x.cfg.MaxPixels {
		return nil, fault.Newf(fault.TooLarge, "the picture would have %d x %d pixels, more than max_pixels allows", w, h).With("limit", x.cfg.MaxPixels)
	}
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(out, out.Rect, m, from, draw.Src, nil)
	return x.keep(ctx, p, out, x.cfg.OutputFormat)
}

// fitted is the size that a picture gets, and which part of it is shown.
func fitted(b image.Rectangle, width, height int, fit string) (w, h int, from image.Rectangle) {
	sx, sy := float64(width)/float64(b.Dx()), float64(height)/float64(b.Dy())
	side := func(n float64) int { return max(1, int(math.Round(n))) }
	switch {
	case width == 0:
		return side(float64(b.Dx()) * sy), height, b
	case height == 0:
		return width, side(float64(b.Dy()) * sx), b
	case fit == "fill":
		return width, height, b
	case fit == "contain":
		s := min(sx, sy)
		return side(float64(b.Dx()) * s), side(float64(b.Dy()) * s), b
	}
	s := max(sx, sy)
	cw, ch := min(b.Dx(), side(float64(width)/s)), min(b.Dy(), side(float64(height)/s))
	corner := b.Min.Add(image.Pt((b.Dx()-cw)/2, (b.Dy()-ch)/2))
	return width, height, image.Rectangle{corner, corner.Add(image.Pt(cw, ch))}
}

type imageCropArgs struct {
	imageArg
	X      int `json:"x" range:"0.."`
	Y      int `json:"y" range:"0.."`
	Width  int `json:"width" required:"true" range:"1.."`
	Height int `json:"height" required:"true" range:"1.."`
}

func (x *imageTools) crop(ctx context.Context, a imageCropArgs) (any, error) {
	p, m, release, err := x.decode(ctx, a.File)
	if err != nil {
		return nil, err
	}
	defer release()
	b := m.Bounds()
	if a.X >= b.Dx() || a.Y >= b.Dy() || a.Width > b.Dx()-a.X || a.Height > b.Dy()-a.Y {
		return nil, fault.Newf(fault.ToolError, "the picture has %d x %d pixels; the part asked for is not inside it", b.Dx(), b.Dy()).With("path", "function_args.width")
	}
	out := image.NewNRGBA(image.Rect(0, 0, a.Width, a.Height))
	draw.Draw(out, out.Rect, m, b.Min.Add(image.Pt(a.X, a.Y)), draw.Src)
	return x.keep(ctx, p, out, x.cfg.OutputFormat)
}

type imageRotateArgs struct {
	imageArg
	Degrees int `json:"degrees" required:"true"`
}

func (x *imageTools) rotate(ctx context.Context, a imageRotateArgs) (any, error) {
	degrees := ((a.Degrees % 360) + 360) % 360
	if degrees%90 != 0 {
		return nil, fault.Newf(fault.ToolError, `"degrees" must be a multiple of 90, clockwise, not %d`, a.Degrees).With("path", "function_args.degrees")
	}
	p, m, release, err := x.decode(ctx, a.File)
	if err != nil {
		return nil, err
	}
	defer release()
	return x.keep(ctx, p, rotated(m, degrees), x.cfg.OutputFormat)
}

type imageConvertArgs struct {
	imageArg
	Format string `json:"format" required:"true" enum:"png|jpeg|gif|bmp|tiff"`
}

func (x *imageTools) convert(ctx context.Context, a imageConvertArgs) (any, error) {
	p, m, release, err := x.decode(ctx, a.File)
	if err != nil {
		return nil, err
	}
	defer release()
	return x.keep(ctx, p, m, a.Format)
}

// keep stores a picture. It is written while it is encoded.
func (x *imageTools) keep(ctx context.Context, p *picture, m image.Image, format string) (any, error) {
	if x.call.Files == nil {
		return nil, fault.New(fault.Unsupported, "pictures cannot be kept here")
	}
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.CloseWithError(encodeImage(w, m, format))
	}()
	hash, size, err := x.call.Files.Keep(ctx, r)
	err = errors.Join(err, r.Close()) // which ends the encoder, if it has not ended
	<-ended
	if err != nil {
		return nil, fault.From(err)
	}
	name := strings.TrimSuffix(p.name, extension(p.name)) + "." + format
	file := &fileref.Value{Blob: hash, Name: name, ContentType: fileref.TypeByName(name), Size: size, SHA256: hash}
	return imageResult{file, m.Bounds().Dx(), m.Bounds().Dy()}, nil
}

func extension(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[i:]
	}
	return ""
}

func encodeImage(w io.Writer, m image.Image, format string) error {
	switch format {
	case "jpeg":
		// What is transparent becomes white: the format has no transparency, and black would be a surprise.
		flat := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
		draw.Draw(flat, flat.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(flat, flat.Rect, m, m.Bounds().Min, draw.Over)
		return jpeg.Encode(w, flat, &jpeg.Options{Quality: imageQuality})
	case "gif":
		return gif.Encode(w, m, nil)
	case "bmp":
		return bmp.Encode(w, m)
	case "tiff":
		return tiff.Encode(w, m, &tiff.Options{Compression: tiff.Deflate})
	}
	return png.Encode(w, m)
}

func planImageTools(p *node.Planning, _ *imageToolConfig) {
	toolset.Plan(p, (&imageTools{cfg: imageToolConfig{VisionProfile: "any"}}).tools())
}
