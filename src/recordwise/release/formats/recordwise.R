# Totals, growth and regressions from the tables of this release, with the errors of its noise. Base R, no packages.
# ABOUT
#
#   source("recordwise.R", chdir = TRUE)                      # in the folder of the release
#   rw_total("emp", where = list(county = c("34001", "34003")))
#   rw_total("emp", by = "naics2")
#   rw_growth(rw_total("emp", by = "naics2"), before)         # before: rw_total() of the release of the year before
#   emp <- rw_replicates("replicates/emp.csv")                # written by recordwise ask ... --replicates replicates/emp.csv
#   rw_estimate(function(emp, pay) sum(pay) / sum(emp), emp, pay)
#   rw_regress(pay, emp)                                      # the slope, corrected for the noise of both
#
# A total is the sum of cells of the coarsest table that has its columns; squares of standard errors add up, since noise is
# independent. The command recordwise ask uses all tables together and is more accurate where they nest.

rw_release <- list()
# TABLES
rw_folder <- getwd()

rw_texts <- function(column) sub("^'", "", column)

rw_table <- function(name, folder = rw_folder) {
  table <- rw_release$tables[[name]]
  if (is.null(table)) stop("no such table; the tables are ", paste(names(rw_release$tables), collapse = ", "))
  file <- file.path(folder, paste0(name, ".csv"))
  marked <- startsWith(readLines(file, n = 1, warn = FALSE), "# ")
  all <- read.csv(file, skip = as.integer(marked), colClasses = "character", check.names = FALSE, na.strings = "", encoding = "UTF-8")
  names(all) <- rw_texts(names(all))
  texts <- table$texts
  for (name in names(all)) all[[name]] <- if (name %in% texts) rw_texts(all[[name]]) else type.convert(all[[name]], as.is = TRUE)
  all
}

rw_z <- function() qnorm((1 + rw_release$confidence) / 2)

rw_total <- function(name, where = list(), by = NULL, folder = rw_folder, table = NULL) {
  columns <- c(names(where), by)
  tells <- function(each) name %in% names(each$halves) && all(columns %in% each$keys)
  telling <- Filter(tells, if (is.null(table)) rw_release$tables else rw_release$tables[table])
  if (length(telling) == 0) stop("no table adds up '", name, "' by ", paste(columns, collapse = " and "))
  chosen <- names(telling)[which.min(vapply(telling, function(each) each$rows, 0))]
  cells <- rw_table(chosen, folder)
  for (column in names(where)) {
    missing <- setdiff(where[[column]], cells[[column]])
    if (length(missing)) stop("no cell of ", chosen, " has the code ", paste(missing, collapse = ", "), "; codes are text, with leading zeros")
    cells <- cells[cells[[column]] %in% where[[column]], , drop = FALSE]
  }
  if (nrow(cells) == 0) stop("no cell has all of these codes")
  label <- if (is.null(by)) rep("total", nrow(cells)) else cells[[by]]
  # A cell without a code counts too; tapply would leave it out. The file does not tell it from one whose code is empty.
  if (anyNA(label)) label[is.na(label)] <- "(no code)"
  value <- tapply(cells[[name]], label, sum)
  sd <- sqrt(tapply(cells[[paste0(name, "_sd")]]^2, label, sum))
  half <- telling[[chosen]]$halves[[name]]
  found <- data.frame(label = names(value), value = as.numeric(value), sd = as.numeric(sd), half = half, stringsAsFactors = FALSE)
  reach <- rw_z() * found$sd + found$half
  found$low <- found$value - reach
  found$high <- found$value + reach
  attr(found, "table") <- chosen
  found
}

# The ratios r with top - r bottom within its reach (Fieller), by halving.
rw_ratio <- function(top, bottom) {
  both <- merge(top, bottom, by = "label", suffixes = c("", "_bottom"))
  z <- rw_z()
  if (any(abs(both$value_bottom) <= z * both$sd_bottom + both$half_bottom)) stop("a denominator is not clearly different from 0; take larger regions")
  value <- both$value / both$value_bottom
  error <- function(r) sqrt(both$sd^2 + r^2 * both$sd_bottom^2)
  outside <- function(r) abs(both$value - r * both$value_bottom) > z * error(r) + both$half + abs(r) * both$half_bottom
  end <- function(sign) {
    far <- pmax(error(value) / abs(both$value_bottom), .Machine$double.xmin)
    near <- rep(0, length(value))
    while (any(close <- !outside(value + sign * far))) far <- ifelse(close, 2 * far, far)
    for (step in 1:120) {
      middle <- (near + far) / 2
      beyond <- outside(value + sign * middle)
      near <- ifelse(beyond, near, middle)
      far <- ifelse(beyond, middle, far)
    }
    value + sign * far
  }
  data.frame(label = both$label, value = value, sd = error(value) / abs(both$value_bottom), low = end(-1), high = end(1), stringsAsFactors = FALSE)
}

# Growth as a share: 0.02 is 2 %. The noise of two releases is independent.
rw_growth <- function(now, before) {
  found <- rw_ratio(now, before)
  for (name in c("value", "low", "high")) found[[name]] <- found[[name]] - 1
  found
}

# Values with simulated errors: one row for each label, the value, then a column for each replicate.
rw_replicates <- function(file) {
  # A label may be the letters NA; a value may be missing.
  read <- read.csv(file, check.names = FALSE, colClasses = "character", comment.char = "#", na.strings = character())
  for (name in setdiff(names(read), "label")) read[[name]] <- type.convert(read[[name]], as.is = TRUE)
  list(label = rw_texts(read$label), value = read$value, drawn = as.matrix(read[, startsWith(names(read), "replicate_"), drop = FALSE]))
}

rw_matched <- function(first, other) {
  at <- match(first$label, other$label)
  if (anyNA(at)) stop("the replicates have different labels")
  if (ncol(first$drawn) != ncol(other$drawn)) stop("the replicates differ in number")
  list(label = first$label, value = other$value[at], drawn = other$drawn[at, , drop = FALSE])
}

# Any smooth function of noisy columns: its value, and the error that their noise gives it.
rw_estimate <- function(f, ...) {
  each <- list(...)
  each <- c(each[1], lapply(each[-1], function(other) rw_matched(each[[1]], other)))
  value <- do.call(f, unname(lapply(each, function(one) one$value)))
  drawn <- vapply(seq_len(ncol(each[[1]]$drawn)), function(at) as.numeric(do.call(f, unname(lapply(each, function(one) one$drawn[, at])))), numeric(length(value)))
  sd <- sqrt(rowMeans((matrix(drawn, nrow = length(value)) - as.numeric(value))^2))
  data.frame(value = as.numeric(value), sd = sd, low = value - rw_z() * sd, high = value + rw_z() * sd)
}

# The slope of least squares, less what noise adds to the products (Fuller 1987); both columns have noise of their own.
rw_regress <- function(response, covariate, weights = NULL) {
  covariate <- rw_matched(response, covariate)
  X <- covariate$value; Y <- response$value; n <- length(X)
  w <- if (is.null(weights)) rep(1, n) else weights
  if (n < 4 || any(w <= 0)) stop("needs at least four labels and positive weights")
  mean_of <- function(each) sum(w * each) / sum(w)
  products <- function(one, other) sum(w * (one - mean_of(one)) * (other - mean_of(other)))
  noise <- covariate$drawn - X
  added <- mean(apply(noise, 2, function(u) products(u, u)))
  spread <- products(X, X)
  left <- spread - added
  if (left <= 2 * sd(apply(covariate$drawn, 2, function(x) products(x, x)))) stop("the covariate is mostly noise: no slope can be told; take larger regions")
  slope <- products(X, Y) / left
  rest <- Y - mean_of(Y) - slope * (X - mean_of(X))
  scores <- w * ((X - mean_of(X)) * rest + slope * rowMeans(noise^2))
  sd <- sqrt(n / (n - 2) * sum(scores^2)) / left
  data.frame(slope = slope, sd = sd, low = slope - rw_z() * sd, high = slope + rw_z() * sd, intercept = mean_of(Y) - slope * mean_of(X), naive = products(X, Y) / spread, reliability = left / spread)
}
