#include "calib/fit_solver.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace rackcast::calib {

namespace {

class Problem {
 public:
  Problem(const Form& form, const std::vector<FitPoint>& all, std::span<const int> points, const std::vector<double>& start,
          const std::vector<bool>& fixed, double soft)
      : form_(form), all_(all), points_(points), start_(start), soft_(soft) {
    for (std::size_t i = 0; i < form.parameters.size(); ++i)
      if (!fixed[i]) free_.push_back(i);
  }

  Eigen::Index free_count() const { return static_cast<Eigen::Index>(free_.size()); }
  double low(Eigen::Index i) const { return encode(free_[static_cast<std::size_t>(i)], parameter(i).low); }
  double high(Eigen::Index i) const { return encode(free_[static_cast<std::size_t>(i)], parameter(i).high); }

  Eigen::VectorXd start() const {
    Eigen::VectorXd u(free_count());
    for (Eigen::Index i = 0; i < u.size(); ++i) {
      const std::size_t k = free_[static_cast<std::size_t>(i)];
      const auto& p = form_.parameters[k];
      const bool absent = p.optional && start_[k] <= 0;  // start in the middle: near its lower bound nothing pulls
      u[i] = encode(k, absent ? std::sqrt(p.low * p.high) : std::clamp(start_[k], p.low, p.high));
    }
    return u;
  }

  std::vector<double> theta(const Eigen::VectorXd& u) const {
    std::vector<double> values = start_;
    for (Eigen::Index i = 0; i < u.size(); ++i) {
      const std::size_t k = free_[static_cast<std::size_t>(i)];
      values[k] = form_.parameters[k].positive ? std::exp(u[i]) : u[i];
    }
    return values;
  }

  Eigen::VectorXd residuals(const Eigen::VectorXd& u) const {
    const std::vector<double> values = theta(u);
    Eigen::VectorXd r(static_cast<Eigen::Index>(points_.size()));
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const FitPoint& x = all_[static_cast<std::size_t>(points_[i])];
      const double predicted = std::max(form_.seconds(x, values.data()), 1e-9 * x.time_s);
      r[static_cast<Eigen::Index>(i)] = std::log(predicted / x.time_s);
    }
    return r;
  }

  double loss(const Eigen::VectorXd& r) const {
    double sum = 0;
    for (const double value : r) sum += 2 * soft_ * soft_ * (std::sqrt(1 + value * value / (soft_ * soft_)) - 1);
    return sum;
  }

  Eigen::VectorXd clamp(Eigen::VectorXd u) const {
    for (Eigen::Index i = 0; i < u.size(); ++i) u[i] = std::clamp(u[i], low(i), high(i));
    return u;
  }

  // One descent from u; returns its end and loss.
  std::pair<Eigen::VectorXd, double> descend(Eigen::VectorXd u, int iterations) const {
    Eigen::VectorXd r = residuals(u);
    double best = loss(r), damping = 1e-2;
    for (int step = 0; step < iterations && damping < 1e8; ++step) {
      const Eigen::MatrixXd jacobian = slopes(u, r);
      const Eigen::VectorXd weights = (1 + (r.array() / soft_).square()).rsqrt();  // soft-L1 as reweighted squares
      const Eigen::MatrixXd normal = jacobian.transpose() * weights.asDiagonal() * jacobian;
      const Eigen::VectorXd gradient = jacobian.transpose() * weights.asDiagonal() * r;
      Eigen::MatrixXd damped = normal;
      damped.diagonal().array() += damping * (normal.diagonal().array() + 1e-9);
      const Eigen::VectorXd trial = clamp(u - damped.ldlt().solve(gradient));
      const Eigen::VectorXd trial_r = residuals(trial);
      const double trial_loss = loss(trial_r);
      if (trial_loss < best) {
        const double gain = best - trial_loss;
        u = trial;
        r = trial_r;
        best = trial_loss;
        damping = std::max(1e-9, damping / 5);
        if (gain < 1e-10 * (1 + best)) break;
      } else {
        damping *= 4;
      }
    }
    return {u, best};
  }

 private:
  const Parameter& parameter(Eigen::Index i) const { return form_.parameters[free_[static_cast<std::size_t>(i)]]; }
  double encode(std::size_t k, double value) const { return form_.parameters[k].positive ? std::log(value) : value; }

  Eigen::MatrixXd slopes(const Eigen::VectorXd& u, const Eigen::VectorXd& r) const {
    Eigen::MatrixXd jacobian(r.size(), u.size());
    for (Eigen::Index i = 0; i < u.size(); ++i) {
      const double step = 1e-5 * std::max(1.0, std::abs(u[i]));
      Eigen::VectorXd moved = u;
      moved[i] += u[i] + step > high(i) ? -step : step;
      jacobian.col(i) = (residuals(moved) - r) / (moved[i] - u[i]);
    }
    return jacobian;
  }

  const Form& form_;
  const std::vector<FitPoint>& all_;
  std::span<const int> points_;
  const std::vector<double>& start_;
  double soft_;
  std::vector<std::size_t> free_;
};

}  // namespace

Solution solve(const Form& form, const std::vector<FitPoint>& all, std::span<const int> points,
               const std::vector<double>& start, const std::vector<bool>& fixed, const SolverOptions& options) {
  const Problem problem(form, all, points, start, fixed, options.soft);
  std::mt19937_64 random(options.seed);
  Solution best{start, std::numeric_limits<double>::infinity()};
  for (int attempt = 0; attempt < std::max(1, options.starts); ++attempt) {
    Eigen::VectorXd u = problem.start();
    if (attempt > 0)
      for (Eigen::Index i = 0; i < u.size(); ++i)
        u[i] = problem.low(i) + (problem.high(i) - problem.low(i)) * static_cast<double>(random() >> 11) * 0x1p-53;
    const auto [end, loss] = problem.descend(u, options.iterations);
    if (loss < best.loss) best = {problem.theta(end), loss};
  }
  return best;
}

std::vector<double> errors(const Form& form, const std::vector<FitPoint>& all, std::span<const int> points,
                           const std::vector<double>& theta) {
  std::vector<double> found;
  for (const int i : points) {
    const FitPoint& x = all[static_cast<std::size_t>(i)];
    found.push_back(std::abs(form.seconds(x, theta.data()) / x.time_s - 1));
  }
  return found;
}

}  // namespace rackcast::calib
