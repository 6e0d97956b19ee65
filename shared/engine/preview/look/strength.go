package look

// stronger multiplies the effect of operations by a factor.
func stronger(ops []Op, by float64) []Op {
	if by == 1 {
		return ops
	}
	scaled := make([]Op, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case Grade:
			lut := op.LUT
			scaled[i] = Grade{LUTOf(func(r, g, b float64) (float64, float64, float64) {
				red, green, blue := lut.At(r, g, b)
				return r + (red-r)*by, g + (green-g)*by, b + (blue-b)*by
			})}
		case Smooth:
			scaled[i] = Smooth{op.Radius * by, op.Range}
		case Clarity:
			scaled[i] = Clarity{op.Radius, op.Amount * by}
		case Bloom:
			scaled[i] = Bloom{op.Radius, op.Threshold, op.Amount * by}
		case Blur:
			scaled[i] = Blur{op.Radius * by}
		case Layer:
			neutral := map[Mode]float32{Multiply: 1, Screen: 0, Add: 0.5}[op.Mode]
			texture := op.Texture
			op.Texture = func(s *Sheet) {
				texture(s)
				for i, v := range s.Values {
					s.Values[i] = min(max(neutral+(v-neutral)*float32(by), 0), 1)
				}
			}
			scaled[i] = op
		default:
			scaled[i] = op
		}
	}
	return scaled
}
