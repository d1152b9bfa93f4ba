module count

go 1.19
