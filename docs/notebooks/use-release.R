# Reads a published folder and adds up cells, in base R: Rscript use-release.R published
folder <- commandArgs(trailingOnly = TRUE)[1]
cells <- read.csv(file.path(folder, "county_by_naics3.csv"), colClasses = c(county = "character", naics3 = "character"))

# Noise is independent from cell to cell: variances add up, not standard deviations.
by_county <- aggregate(cbind(emp = sum_emp, variance = sum_emp_sd^2) ~ county, data = cells, FUN = sum)
by_county$sd <- sqrt(by_county$variance)
print(by_county[, c("county", "emp", "sd")], row.names = FALSE)

# Each value has an interval of its own.
inside <- with(cells, sum_emp_low <= sum_emp & sum_emp <= sum_emp_high)
stopifnot(all(inside), nchar(cells$county) == 5)
