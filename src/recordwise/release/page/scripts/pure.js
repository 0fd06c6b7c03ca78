// Where all noise has a pure loss: epsilon and power are the smaller of what the pure and the zCDP loss say.
const withPure = (known, record) => {
  const pure = model.pure(record), power = Math.min(1, 0.05 * Math.exp(pure), -Math.expm1(-pure + Math.log1p(-0.05))) + 1e-9;
  const from = pure <= known.epsilon ? "the pure loss" : "the zCDP loss ρ";
  return {epsilon: Math.min(pure, known.epsilon), power: Math.min(known.power, power), pure, from};
};
