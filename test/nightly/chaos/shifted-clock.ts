/** Preloaded into a process: shifts its clock by `CHAOS_CLOCK_SHIFT_MS`, which must not matter. */
const shiftMs = Number(process.env.CHAOS_CLOCK_SHIFT_MS)
const RealDate = Date
const now = () => RealDate.now() + shiftMs

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
})
