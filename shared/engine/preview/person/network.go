package person

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
)

// The files hold the convolutions of MediaPipe's selfie segmentation (Apache-2.0), as
// scripts/person-weights.py describes.
var (
	//go:embed landscape.f16
	landscapeFile []byte
	//go:embed square.f16
	squareFile []byte
)

// convolution has its weights in groups of four outputs: weights[group][input][4]. A depthwise
// convolution has weights[row*side+column][output].
type convolution struct {
	side, stride, inputs, outputs int
	depthwise                     bool
	weights, biases               []float32
}

var (
	landscape = sync.OnceValues(func() ([]convolution, error) { return load(landscapeFile) })
	square    = sync.OnceValues(func() ([]convolution, error) { return load(squareFile) })
)

// load returns a network's convolutions in the order of computation.
func load(rest []byte) ([]convolution, error) {
	var all []convolution
	halves := func(count int) ([]float32, error) {
		if len(rest) < 2*count {
			return nil, fmt.Errorf("person: the weights of convolution %d are incomplete", len(all))
		}
		values := make([]float32, count)
		for i := range values {
			values[i] = half(binary.LittleEndian.Uint16(rest[2*i:]))
		}
		rest = rest[2*count:]
		return values, nil
	}
	for len(rest) >= 8 {
		head := [4]int{}
		for i := range head {
			head[i] = int(binary.LittleEndian.Uint16(rest[2*i:]))
		}
		rest = rest[8:]
		c := convolution{side: head[0], inputs: head[1], outputs: head[2], stride: head[3]}
		c.depthwise = c.inputs == 1
		stored, err := halves(c.side * c.side * c.inputs * c.outputs)
		if err != nil {
			return nil, err
		}
		if c.biases, err = halves(c.outputs); err != nil {
			return nil, err
		}
		if c.weights = stored; !c.depthwise && c.stride > 0 {
			c.pack(stored)
		}
		all = append(all, c)
	}
	return all, nil
}

func (c *convolution) pack(stored []float32) {
	sum := c.side * c.side * c.inputs
	c.weights = make([]float32, len(stored))
	for output := range c.outputs {
		for i := range sum {
			c.weights[(output/4*sum+i)*4+output%4] = stored[output*sum+i]
		}
	}
}

// half returns the value of a float16, which must be finite.
func half(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, int(bits>>10&31), uint32(bits&1023)
	if exponent == 0 {
		value := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(value) | sign)
	}
	return math.Float32frombits(sign | uint32(exponent+112)<<23 | fraction<<13)
}

// tensor has values[row][column][channel].
type tensor struct {
	height, width, channels int
	values                  []float32
}

// pass computes the network for pictures of one size. It reuses its memory.
type pass struct {
	layers []convolution
	next   int
	memory []float32
	used   int
	patch  []float32
}

func (p *pass) tensor(height, width, channels int) tensor {
	size := height * width * channels
	if p.used+size > len(p.memory) {
		// Existing tensors keep the old memory. The next pass will have enough memory from the start.
		p.memory, p.used = make([]float32, 2*(len(p.memory)+size)), 0
	}
	values := p.memory[p.used : p.used+size : p.used+size]
	p.used += size
	return tensor{height, width, channels, values}
}

// mask returns the probability, from 0 to 1, that each pixel shows a person. Sides are multiples of 16. The architecture is
// MobileNetV3 with a decoder.
func (p *pass) mask(picture tensor) tensor {
	p.next, p.used = 0, 0
	whole := swish(p.convolve(picture))              // half of the picture's size
	fine := p.bottleneck(whole, relu, true, false)   // a quarter
	coarse := p.bottleneck(fine, relu, false, false) // an eighth
	coarse = p.bottleneck(coarse, relu, false, true)
	deep := p.bottleneck(coarse, swish, true, false) // a sixteenth
	for range 4 {
		deep = p.bottleneck(deep, swish, true, true)
	}
	mean := p.mean(deep)
	deep = relu(p.convolve(deep))
	deep = scale(deep, sigmoid(p.convolve(mean)))
	deep = p.decode(coarse, p.double(deep))
	deep = p.decode(fine, p.double(deep))
	deep = p.decode(whole, p.double(deep))
	return sigmoid(p.expand(deep))
}

// bottleneck is an inverted residual block, with attention to channels.
func (p *pass) bottleneck(from tensor, activate func(tensor) tensor, attention, residual bool) tensor {
	t := activate(p.convolve(from))
	t = activate(p.convolve(t))
	if attention {
		t = scale(t, p.attention(p.mean(t)))
	}
	t = p.convolve(t)
	if residual {
		add(t, from)
	}
	return t
}

func (p *pass) attention(mean tensor) tensor { return sigmoid(p.convolve(relu(p.convolve(mean)))) }

// decode adds the details of an earlier tensor to a deeper tensor of the same size.
func (p *pass) decode(detail, deep tensor) tensor {
	deep = p.convolve(deep)
	sum := p.copy(detail)
	add(sum, deep)
	weights := p.attention(p.mean(sum))
	t := scale(p.copy(detail), weights)
	add(t, deep)
	t = relu(p.convolve(t))
	fine := relu(p.convolve(t))
	add(fine, t)
	return fine
}

func (p *pass) copy(from tensor) tensor {
	to := p.tensor(from.height, from.width, from.channels)
	copy(to.values, from.values)
	return to
}

func relu(t tensor) tensor {
	for i, v := range t.values {
		t.values[i] = max(v, 0)
	}
	return t
}

func swish(t tensor) tensor {
	for i, v := range t.values {
		t.values[i] = v * min(max(v+3, 0), 6) * (1.0 / 6)
	}
	return t
}

func sigmoid(t tensor) tensor {
	for i, v := range t.values {
		t.values[i] = float32(1 / (1 + math.Exp(-float64(v))))
	}
	return t
}

func add(to, other tensor) {
	for i, v := range other.values {
		to.values[i] += v
	}
}

func scale(t, by tensor) tensor {
	for at := 0; at < len(t.values); at += t.channels {
		pixel := t.values[at:][:len(by.values)]
		for i, v := range by.values {
			pixel[i] *= v
		}
	}
	return t
}

func (p *pass) mean(from tensor) tensor {
	to := p.tensor(1, 1, from.channels)
	clear(to.values)
	for at := 0; at < len(from.values); at += from.channels {
		for i, v := range from.values[at:][:from.channels] {
			to.values[i] += v
		}
	}
	for i := range to.values {
		to.values[i] /= float32(from.height * from.width)
	}
	return to
}

// double doubles the size by interpolating between pixel centers.
func (p *pass) double(from tensor) tensor {
	to := p.tensor(2*from.height, 2*from.width, from.channels)
	// neighbors returns the two sources of a line of the result, and the weight of the second.
	neighbors := func(at, side int) (int, int, float32) {
		first := (at - 1) >> 1
		return max(first, 0), min(first+1, side-1), []float32{0.75, 0.25}[at&1]
	}
	pixel := func(y, x int) []float32 { return from.values[(y*from.width+x)*from.channels:][:from.channels] }
	for y := range to.height {
		top, bottom, down := neighbors(y, from.height)
		for x := range to.width {
			left, right, across := neighbors(x, from.width)
			a, b, c, d := pixel(top, left), pixel(top, right), pixel(bottom, left), pixel(bottom, right)
			wa, wb, wc, wd := (1-down)*(1-across), (1-down)*across, down*(1-across), down*across
			for i := range to.values[(y*to.width+x)*to.channels:][:to.channels] {
				to.values[(y*to.width+x)*to.channels+i] = a[i]*wa + b[i]*wb + c[i]*wc + d[i]*wd
			}
		}
	}
	return to
}

// expand is a transposed convolution of 2x2 pixels to one channel.
func (p *pass) expand(from tensor) tensor {
	c := p.layer()
	to := p.tensor(2*from.height, 2*from.width, 1)
	for y := range to.height {
		for x := range to.width {
			sum := c.biases[0]
			weights := c.weights[(y&1*2+x&1)*from.channels:][:from.channels]
			for i, v := range from.values[(y>>1*from.width+x>>1)*from.channels:][:from.channels] {
				sum += v * weights[i]
			}
			to.values[y*to.width+x] = sum
		}
	}
	return to
}

func (p *pass) layer() *convolution {
	p.next++
	return &p.layers[p.next-1]
}

// convolve pads the picture with zeros, with fewer at the top and left.
func (p *pass) convolve(from tensor) tensor {
	c := p.layer()
	to := p.tensor(from.height/c.stride, from.width/c.stride, c.outputs)
	pad := (c.side - c.stride) / 2
	switch {
	case c.depthwise:
		c.deep(from, to, pad)
	case c.side > 1:
		c.multiply(p.patches(from, to, c, pad), to.values)
	default:
		c.multiply(from.values, to.values)
	}
	return to
}

// patches lists the inputs of each output pixel, row by row.
func (p *pass) patches(from, to tensor, c *convolution, pad int) []float32 {
	p.patch = p.patch[:0]
	zeros := make([]float32, from.channels)
	for y := range to.height {
		for x := range to.width {
			for row := y*c.stride - pad; row < y*c.stride-pad+c.side; row++ {
				for column := x*c.stride - pad; column < x*c.stride-pad+c.side; column++ {
					if row < 0 || row >= from.height || column < 0 || column >= from.width {
						p.patch = append(p.patch, zeros...)
					} else {
						p.patch = append(p.patch, from.values[(row*from.width+column)*from.channels:][:from.channels]...)
					}
				}
			}
		}
	}
	return p.patch
}

// multiply computes two pixels with four outputs at a time, which fit into the registers. The
// number of outputs is a multiple of four.
func (c *convolution) multiply(in, out []float32) {
	sum := c.side * c.side * c.inputs
	for pixel, pixels := 0, len(in)/sum; pixel < pixels; pixel += 2 {
		first := in[pixel*sum:][:sum]
		second, other := first, out[pixel*c.outputs:][:c.outputs]
		to := other
		if pixel+1 < pixels {
			second, other = in[(pixel+1)*sum:][:sum], out[(pixel+1)*c.outputs:][:c.outputs]
		}
		for output := 0; output+4 <= c.outputs; output += 4 {
			weights := c.weights[output*sum:][:4*sum]
			bias := (*[4]float32)(c.biases[output:])
			a0, a1, a2, a3 := bias[0], bias[1], bias[2], bias[3]
			b0, b1, b2, b3 := a0, a1, a2, a3
			second = second[:len(first)]
			for i, v := range first {
				w, u := (*[4]float32)(weights), second[i]
				weights = weights[4:]
				a0 += v * w[0]
				a1 += v * w[1]
				a2 += v * w[2]
				a3 += v * w[3]
				b0 += u * w[0]
				b1 += u * w[1]
				b2 += u * w[2]
				b3 += u * w[3]
			}
			one, two := (*[4]float32)(to[output:]), (*[4]float32)(other[output:])
			two[0], two[1], two[2], two[3] = b0, b1, b2, b3
			one[0], one[1], one[2], one[3] = a0, a1, a2, a3
		}
	}
}

// deep is a depthwise convolution.
func (c *convolution) deep(from, to tensor, pad int) {
	channels := from.channels
	for y := range to.height {
		for x := range to.width {
			out := to.values[(y*to.width+x)*channels:][:channels]
			copy(out, c.biases)
			for row := range c.side {
				down := y*c.stride - pad + row
				if down < 0 || down >= from.height {
					continue
				}
				for column := range c.side {
					across := x*c.stride - pad + column
					if across < 0 || across >= from.width {
						continue
					}
					weights := c.weights[(row*c.side+column)*channels:][:channels]
					for i, v := range from.values[(down*from.width+across)*channels:][:channels] {
						out[i] += v * weights[i]
					}
				}
			}
		}
	}
}
