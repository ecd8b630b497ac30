import type { Config } from '../config/config.ts'
import { DomainError } from '../errors.ts'

/**
 * Refuses a page that this gateway does not have. The specification (4.2) leaves open whether `pageIndex` starts at 0
 * or 1, and how large a page may be: both are settings.
 * @throws DomainError `invalid_request`
 */
export function refuseOutsideLimits(
  {
    GATEWAY_CARDS_FIRST_PAGE: firstPage,
    GATEWAY_CARDS_MAX_PAGE_SIZE: maxSize,
  }: Pick<Config, 'GATEWAY_CARDS_FIRST_PAGE' | 'GATEWAY_CARDS_MAX_PAGE_SIZE'>,
  { pageIndex, pageSize }: { pageIndex?: string | undefined; pageSize?: string | undefined },
): void {
  if (pageIndex !== undefined && Number(pageIndex) < firstPage) {
    refuse('pageIndex', `must be a whole number of at least ${firstPage}`)
  }
  if (pageSize !== undefined && Number(pageSize) > maxSize) {
    refuse('pageSize', `must be a whole number from 1 to ${maxSize}`)
  }
}

function refuse(path: string, message: string): never {
  throw new DomainError('invalid_request', `${path}: ${message}`, { errors: [{ path, message }] })
}
