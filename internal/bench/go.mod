module mcpbench/internal/bench

go 1.26.0
