/** The addresses that stand for every address of this machine. */
const EVERY_HOST = ['0.0.0.0', '::']

/** Returns whether the same port cannot be listened on at both addresses. */
export function doHostsOverlap(one: string, other: string): boolean {
  return one === other || [one, other].some((host) => EVERY_HOST.includes(host))
}
