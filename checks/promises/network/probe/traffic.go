package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// trafficTime is how long one way is measured.
const trafficTime = 2 * time.Second

// traffic measures a connection to a server of the measurement's, and prints one
// number: for "up" and "down" bytes a second, for "get" the microseconds of a
// connection with one question, the median of many.
func traffic(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("traffic takes a kind and an address")
	}
	kind, address := words[0], words[1]
	if kind == "get" {
		return gets(address)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	begin, bytes := time.Now(), 0
	buffer := make([]byte, 256<<10)
	if err := conn.SetDeadline(begin.Add(trafficTime)); err != nil {
		return err
	}
	for {
		var n int
		if kind == "up" {
			n, err = conn.Write(buffer)
		} else {
			n, err = conn.Read(buffer)
		}
		bytes += n
		if err != nil {
			break
		}
	}
	fmt.Println(int64(float64(bytes) / time.Since(begin).Seconds()))
	return nil
}

// digest prints how many bytes a server sends, and their SHA-256.
func digest(words []string) error {
	if len(words) != 1 {
		return fmt.Errorf("digest takes an address")
	}
	conn, err := net.Dial("tcp", words[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, conn)
	fmt.Printf("%d %x\n", n, sum.Sum(nil))
	return err
}

func gets(address string) error {
	const rounds = 200
	var times []time.Duration
	for range rounds {
		begin := time.Now()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		conn.Close()
		if err != nil {
			return err
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	fmt.Println(times[rounds/2].Microseconds())
	return nil
}

// now says when the probe has begun, in nanoseconds.
func now() error {
	_, err := fmt.Println(time.Now().UnixNano())
	return err
}
