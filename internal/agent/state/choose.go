package state

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"claudebox/internal/diag"
)

// Criteria select instances to remove: an instance must meet every criterion that is set.
type Criteria struct {
	Gone       bool          // the project is no longer there
	OlderThan  time.Duration // not used for at least this long; 0: not set
	LargerThan int64         // bytes; 0: not set
}

// Choose returns the instances that meet the criteria. It leaves out those in use. An instance whose project is not
// known does not count as gone.
func Choose(list []Kept, c Criteria, now time.Time) []Kept {
	return slices.DeleteFunc(slices.Clone(list), func(in Kept) bool {
		return in.Live || c.Gone && !in.Gone ||
			c.OlderThan > 0 && now.Sub(in.LastUsed) < c.OlderThan ||
			c.LargerThan > 0 && in.Bytes <= c.LargerThan
	})
}

const day = 24 * time.Hour

// ParseAge reads "12h", "30d" or "4w".
func ParseAge(text string) (time.Duration, error) {
	age := amount(text, map[byte]time.Duration{'h': time.Hour, 'd': day, 'w': 7 * day})
	if age == 0 {
		return 0, diag.Errorf("read the age "+strconv.Quote(text), "write 12h, 30d or 4w",
			"it is not a number of hours, days or weeks")
	}
	return age, nil
}

// ParseSize reads "500M" or "2G", in powers of 1,024.
func ParseSize(text string) (int64, error) {
	size := amount(strings.ToUpper(text), map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40})
	if size == 0 {
		return 0, diag.Errorf("read the size "+strconv.Quote(text), "write 500M or 2G",
			"it is not a number of K, M, G or T")
	}
	return size, nil
}

// amount reads a whole number followed by a one-letter unit; it returns 0 if text is anything else.
func amount[N ~int64](text string, units map[byte]N) N {
	last := max(0, len(text)-1)
	number, err := strconv.Atoi(text[:last])
	if err != nil || number < 1 || number > 100_000 {
		return 0
	}
	return N(number) * units[text[last]]
}

// ShowSize writes bytes as a person reads them: "1.2 GiB".
func ShowSize(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value := float64(bytes)
	for len(units) > 1 && value >= 1000 {
		value /= 1024
		units = units[1:]
	}
	if units[0] == "B" || value >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64) + " " + units[0]
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[0]
}

// ShowAge writes how long ago past was: "3 days ago". The zero time is "not known".
func ShowAge(past, now time.Time) string {
	if past.IsZero() {
		return "not known"
	}
	ago := now.Sub(past)
	for _, step := range []struct {
		length time.Duration
		name   string
	}{{day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(ago / step.length); n == 1 {
			return "1 " + step.name + " ago"
		} else if n > 1 {
			return strconv.Itoa(n) + " " + step.name + "s ago"
		}
	}
	return "just now"
}
