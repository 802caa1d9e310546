package cachefile

import (
	"encoding/binary"
	"hash/fnv"
	"reflect"
)

// Encode encodes a value for [Decode]: booleans, integers, strings, and slices, arrays and structs of them, by their
// exported fields. Unlike JSON it keeps file names unchanged, which may hold any bytes. It panics if the type has
// anything else in it. Elements of slices that are [Coded] are encoded by that.
//
// It is our own because a launch reads and writes four such values: encoding/gob takes 1.0 ms of the launch's 14 for
// them, and JSON 0.7 for the plan alone.
func Encode(value any) []byte {
	v := reflect.ValueOf(value)
	const usual = 2 << 10
	c := Codec{bytes: binary.LittleEndian.AppendUint64(make([]byte, 0, usual), shapeOf(v.Type()))}
	c.value(v)
	return c.bytes
}

// Decode decodes src, which [Encode] made of a value of the same type, into the value that pointer points at. It
// reports whether src is exactly one such value; the value may be half decoded if not. Its strings share one copy of
// src.
func Decode(src []byte, pointer any) bool {
	v := reflect.ValueOf(pointer).Elem()
	const head = 8
	if len(src) < head || binary.LittleEndian.Uint64(src) != shapeOf(v.Type()) {
		return false
	}
	c := Codec{reads: true, text: string(src[head:]), bytes: src[head:]}
	c.value(v)
	return !c.bad && len(c.bytes) == 0
}

// shapeOf returns a hash of the kinds of everything that a type's values consist of, in their order: a program whose
// type has another shape does not read them.
func shapeOf(t reflect.Type) uint64 {
	h := fnv.New64a()
	h.Write(appendShape(make([]byte, 0, 512), reflect.Zero(t)))
	return h.Sum64()
}

func appendShape(b []byte, zero reflect.Value) []byte {
	b = append(b, byte(zero.Kind()))
	switch zero.Kind() {
	case reflect.Slice, reflect.Array:
		return appendShape(b, reflect.Zero(zero.Type().Elem()))
	case reflect.Struct:
		for i := range zero.NumField() {
			if field := zero.Field(i); field.CanInterface() {
				b = appendShape(b, field)
			}
		}
		return append(b, 0)
	}
	return b
}

// Codec walks a value, and encodes it or sets it to what it decodes: one walk, so that the two agree. After the first
// bad input it reads nothing more.
//
// It decodes into new memory, and writes there before it reads: of a page that is read first (a check for nil is
// enough) the kernel changes the mapping when it is written, and interrupts the other processors for that.
type Codec struct {
	reads bool
	bad   bool
	bytes []byte // what was encoded, or what is left to decode
	text  string // all that is decoded
}

// Coded is a type whose pointers hand all exported fields to a codec, in their order. The encoding is the same as
// without that. Reflection takes 0.1 µs for each field: too long for what there are thousands of.
type Coded interface{ Code(c *Codec) }

var coded = reflect.TypeFor[Coded]()

// Int is for a field.
func Int[T ~int | ~int64](c *Codec, n *T) {
	if c.reads {
		bits := c.take()
		*n = T(bits>>1) ^ -T(bits&1)
		return
	}
	const sign = 63
	c.put(uint64(*n<<1 ^ *n>>sign)) // zigzag: the sign in the lowest bit, as in varints
}

// Uint is for a field.
func (c *Codec) Uint(n *uint64) {
	if c.reads {
		*n = c.take()
		return
	}
	c.put(*n)
}

// Bool is for a field.
func (c *Codec) Bool(is *bool) {
	switch {
	case c.reads:
		*is = c.take() == 1
	case *is:
		c.put(1)
	default:
		c.put(0)
	}
}

// Text is for a field.
func (c *Codec) Text(text *string) {
	if !c.reads {
		c.put(uint64(len(*text)))
		c.bytes = append(c.bytes, *text...)
		return
	}
	n := c.count()
	if c.bad = c.bad || n > len(c.bytes); c.bad {
		return
	}
	at := len(c.text) - len(c.bytes)
	*text = c.text[at : at+n]
	c.bytes = c.bytes[n:]
}

// List is for a field. It encodes the number of elements plus one, or 0 for a nil slice, then the elements.
func List[T any](c *Codec, list *[]T, each func(*T)) {
	switch {
	case c.reads:
		*list = nil
		if n := c.count(); n > 0 {
			*list = make([]T, n-1)
		}
	case *list == nil:
		c.put(0)
	default:
		c.put(uint64(len(*list) + 1))
	}
	for i := range *list {
		if c.reads {
			clear((*list)[i : i+1]) // see [Codec]
		}
		each(&(*list)[i])
	}
}

func (c *Codec) value(v reflect.Value) {
	switch {
	case c.bad:
		return
	case v.CanInt():
		field(func(n *int64) { Int(c, n) }, c.reads, v.Int, v.SetInt)
		return
	case v.CanUint():
		field(c.Uint, c.reads, v.Uint, v.SetUint)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		field(c.Bool, c.reads, v.Bool, v.SetBool)
	case reflect.String:
		field(c.Text, c.reads, v.String, v.SetString)
	case reflect.Slice, reflect.Array:
		c.list(v)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanInterface() { // it is exported
				c.value(field)
			}
		}
	default:
		panic("bug: a cached value holds a " + v.Type().String())
	}
}

// field hands a field to a codec's method.
func field[T any](code func(*T), reads bool, get func() T, set func(T)) {
	var value T
	if !reads {
		value = get()
	}
	if code(&value); reads {
		set(value)
	}
}

// list is [List].
func (c *Codec) list(v reflect.Value) {
	isSlice := v.Kind() == reflect.Slice
	switch {
	case !c.reads && isSlice && v.IsNil():
		c.put(0)
	case !c.reads:
		c.put(uint64(v.Len() + 1))
	case !isSlice:
		c.bad = c.count() != v.Len()+1 || c.bad
	default:
		v.SetZero()
		if n := c.count(); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
		}
	}
	isCoded := isSlice && reflect.PointerTo(v.Type().Elem()).Implements(coded)
	for i := range v.Len() {
		at := v.Index(i)
		switch {
		case !isCoded:
			c.value(at)
			continue
		case c.reads:
			at.SetZero() // see [Codec]
		}
		at.Addr().Interface().(Coded).Code(c)
	}
}

func (c *Codec) put(n uint64) { c.bytes = binary.AppendUvarint(c.bytes, n) }

// take decodes a number; 0 where there is none.
func (c *Codec) take() uint64 {
	n, used := binary.Uvarint(c.bytes)
	if c.bad = c.bad || used <= 0; c.bad {
		return 0
	}
	c.bytes = c.bytes[used:]
	return n
}

// count decodes a number of bytes, or of elements plus one. As each element takes at least a byte, it rejects a number
// that is larger than what is left to decode plus one.
func (c *Codec) count() int {
	n := c.take()
	if c.bad = c.bad || n > uint64(len(c.bytes))+1; c.bad {
		return 0
	}
	return int(n)
}
