import DefaultTheme from 'vitepress/theme';
// oxlint-disable-next-line import/no-unassigned-import -- styles
import './tokens.css';

export default DefaultTheme;
