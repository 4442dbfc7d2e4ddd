package prose

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the weights are a file
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"
)

// weightData has the networks as TestClassify_Weights of package human learned them from labelled replies. It is read-only.
//
//go:embed weights.bin
var weightData []byte

// Chances are how probably a reply approves or refuses, compared with labelled ones; what is left of one does neither.
type Chances struct{ Approve, Refuse float64 }

// Of is the chance of a decision.
func (c Chances) Of(d Decision) float64 {
	switch d {
	case Approve:
		return c.Approve
	case Refuse:
		return c.Refuse
	}
	return max(0, 1-c.Approve-c.Refuse) // sums of rounded numbers may be a little more than 1
}

// The outcomes that a network tells apart, in the order of its outputs.
const (
	outApprove = iota
	outRefuse
	outNeither
	Outcomes
)

// Net is a small network that compares replies with those that it was learned from. What each clause and sentence does is a vector; the
// strongest of each component and their mean decide, together with the features of the whole reply.
type Net struct {
	// Width is how many components the vector of a clause has.
	Width int
	// Index says where the weights of a feature are.
	Index map[uint32]int
	// Parts has Width weights for each feature of a clause, Whole has Outcomes for each of a reply.
	Parts, Whole []float32
	// PartBias is added to the vector of a clause. Out has 2·Width weights for each outcome: of the strongest components, then of their
	// means.
	PartBias, Out []float32
	Bias          [Outcomes]float32
}

// NewNet is a network without weights for the given features.
func NewNet(width int, features []uint32) *Net {
	n := &Net{
		Width: width, Index: make(map[uint32]int, len(features)), Parts: make([]float32, len(features)*width),
		Whole:    make([]float32, len(features)*Outcomes),
		PartBias: make([]float32, width), Out: make([]float32, Outcomes*2*width),
	}
	for i, f := range features {
		n.Index[f] = i
	}
	return n
}

// Known are the features of a text that a network knows, by their places, and how much one of them counts.
type Known struct {
	At    []int
	Share float32
}

// Known finds the features that the network knows. A long text has more of them and is not more certain for that; what the network does not
// know makes a text less certain.
func (n *Net) Known(features []uint32) Known {
	out := Known{At: make([]int, 0, len(features)), Share: float32(1 / math.Sqrt(float64(max(len(features), 1))))}
	for _, f := range features {
		if at, ok := n.Index[f]; ok {
			out.At = append(out.At, at)
		}
	}
	return out
}

// Pass is what a network made of a reply on the way to its chances.
type Pass struct {
	// Acts are the vectors of the parts, Strongest says which part has the greatest of a component, Mean is their mean.
	Acts      [][]float32
	Strongest []int
	Mean      []float32
	Outcome   [Outcomes]float32
}

// Forward runs a reply through the network.
func (n *Net) Forward(whole Known, parts []Known) Pass {
	p := Pass{Outcome: n.Bias, Strongest: make([]int, n.Width), Mean: make([]float32, n.Width)}
	for _, f := range whole.At {
		for c := range Outcomes {
			p.Outcome[c] += whole.Share * n.Whole[f*Outcomes+c]
		}
	}
	for _, part := range parts {
		p.Acts = append(p.Acts, n.act(part))
	}
	if len(p.Acts) > 0 {
		n.pool(&p)
	}
	top, sum := max(p.Outcome[0], p.Outcome[1], p.Outcome[2]), float32(0)
	for c := range p.Outcome {
		p.Outcome[c] = float32(math.Exp(float64(p.Outcome[c] - top)))
		sum += p.Outcome[c]
	}
	for c := range p.Outcome {
		p.Outcome[c] /= sum
	}
	return p
}

// act is the vector of a part.
func (n *Net) act(part Known) []float32 {
	sums := make([]float32, n.Width)
	for _, f := range part.At {
		for j, w := range n.Parts[f*n.Width : (f+1)*n.Width] {
			sums[j] += w
		}
	}
	for j := range sums {
		sums[j] = float32(math.Tanh(float64(n.PartBias[j] + part.Share*sums[j])))
	}
	return sums
}

// pool adds what the strongest components of the parts and their means say.
func (n *Net) pool(p *Pass) {
	for j := range n.Width {
		for i, act := range p.Acts {
			if act[j] > p.Acts[p.Strongest[j]][j] {
				p.Strongest[j] = i
			}
			p.Mean[j] += act[j] / float32(len(p.Acts))
		}
		for c := range Outcomes {
			out := n.Out[c*2*n.Width:]
			p.Outcome[c] += out[j]*p.Acts[p.Strongest[j]][j] + out[n.Width+j]*p.Mean[j]
		}
	}
}

// Chances compares a reply with those that the network was learned from.
func (n *Net) Chances(f Features) Chances {
	parts := make([]Known, len(f.Parts))
	for i, part := range f.Parts {
		parts[i] = n.Known(part)
	}
	out := n.Forward(n.Known(f.Whole), parts).Outcome
	return Chances{Approve: float64(out[outApprove]), Refuse: float64(out[outRefuse])}
}

// chances are the mean of those of all networks.
func chances(nets []*Net, f Features) Chances {
	var sum Chances
	for _, n := range nets {
		c := n.Chances(f)
		sum.Approve += c.Approve / float64(len(nets))
		sum.Refuse += c.Refuse / float64(len(nets))
	}
	return sum
}

// The file of weights is a head in text, which an empty line ends, and then, compressed, for each network in little endian: the number of
// features and the width, the small tables as floats, how far apart the numbers of the features are, in order, and their weights as steps
// of a unit that stands before each table.

// FormatNets writes networks as the file has them. Weights are rounded to steps.
func FormatNets(nets []*Net) []byte {
	var file []byte
	for _, n := range nets {
		file = appendNet(file, n)
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(file)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("prose: the weights cannot be compressed: " + err.Error()) // memory takes everything
	}
	return out.Bytes()
}

// The steps that the greatest weights of clauses and of whole replies are written as.
const (
	partSteps  = 15
	wholeSteps = 31
)

func appendNet(file []byte, n *Net) []byte {
	ids := slices.Sorted(maps.Keys(n.Index))
	file = binary.LittleEndian.AppendUint32(file, uint32(len(ids)))
	file = binary.LittleEndian.AppendUint32(file, uint32(n.Width))
	for _, small := range [][]float32{n.PartBias, n.Out, n.Bias[:]} {
		for _, w := range small {
			file = binary.LittleEndian.AppendUint32(file, math.Float32bits(w))
		}
	}
	last := uint32(0)
	for _, id := range ids {
		file = binary.AppendUvarint(file, uint64(id-last))
		last = id
	}
	file = appendTable(file, n, ids, n.Parts, partSteps)
	return appendTable(file, n, ids, n.Whole, wholeSteps)
}

// appendTable writes the weights of all features, one component after the other.
func appendTable(file []byte, n *Net, ids []uint32, weights []float32, steps float32) []byte {
	unit := greatest(weights) / steps
	file = binary.LittleEndian.AppendUint32(file, math.Float32bits(unit))
	width := len(weights) / max(len(ids), 1)
	for j := range width {
		for _, id := range ids {
			step := math.Round(float64(weights[n.Index[id]*width+j] / unit))
			file = append(file, byte(int8(min(max(step, -127), 127))))
		}
	}
	return file
}

// greatest is the size of the greatest weight, one in a thousand left out.
func greatest(weights []float32) float32 {
	sizes := make([]float32, len(weights))
	for i, w := range weights {
		sizes[i] = max(w, -w)
	}
	slices.Sort(sizes)
	if len(sizes) == 0 || sizes[len(sizes)*999/1000] == 0 {
		return 1
	}
	return sizes[len(sizes)*999/1000]
}

// ParseNets reads a file of weights. The file is part of the program, so a mistake in it is one of the program.
func ParseNets(file []byte) []*Net {
	_, body, _ := bytes.Cut(file, []byte("\n\n"))
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		panic("prose: the weights are not compressed: " + err.Error())
	}
	body, err = io.ReadAll(r)
	if err != nil {
		panic("prose: the weights cannot be read: " + err.Error())
	}
	var nets []*Net
	for len(body) > 0 {
		var n *Net
		n, body = parseNet(body)
		nets = append(nets, n)
	}
	return nets
}

func parseNet(file []byte) (*Net, []byte) {
	word := func() uint32 {
		w := binary.LittleEndian.Uint32(file)
		file = file[4:]
		return w
	}
	features, width := int(word()), int(word())
	n := NewNet(width, nil)
	for _, small := range [][]float32{n.PartBias, n.Out, n.Bias[:]} {
		for i := range small {
			small[i] = math.Float32frombits(word())
		}
	}
	n.Index = make(map[uint32]int, features)
	id := uint64(0)
	for i := range features {
		gap, size := binary.Uvarint(file)
		file = file[size:]
		id += gap
		n.Index[uint32(id)] = i
	}
	table := func(width int) []float32 {
		unit := math.Float32frombits(word())
		out := make([]float32, features*width)
		for j := range width {
			for i := range features {
				out[i*width+j] = float32(int8(file[j*features+i])) * unit
			}
		}
		file = file[len(out):]
		return out
	}
	n.Parts, n.Whole = table(width), table(Outcomes)
	return n, file
}
