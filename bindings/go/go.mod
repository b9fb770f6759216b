module github.com/tenon-dl/tenon/bindings/go

go 1.18
