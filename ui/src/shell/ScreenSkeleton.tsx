import { useLocation } from 'wouter';
import { Page, Skeleton } from '@/design';
import { SCREENS } from './screens';

/** While the code of a screen loads: its title, and bars where its content will be. */
export function ScreenSkeleton() {
  const [location] = useLocation();
  const title = SCREENS.find(({ path }) => path === location)?.title;
  return <Page title={title ?? <span aria-hidden>&nbsp;</span>}><Skeleton rows={8} height={36} /></Page>;
}
